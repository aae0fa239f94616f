"""A module that only the user knows to keep memory."""
import torch.cuda


class Pool:
    def free_all(self):
        torch.cuda.library.stub_torch_empty_cache()


def get_pool():
    return Pool()
