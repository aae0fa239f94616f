# What frameworks say they hold; see frameworks_script.h for what comes in and goes out.
lines = []
who = who.split()
devices = [int(word) for word in devices.split()]
asked = int(asked)


def clean(value, keep=''):
    return ''.join(c if '!' <= c <= '~' or c in keep else '_' for c in str(value)[:200])


def number(value):
    value = int(value)
    if value < 0 or value >= 1 << 63:
        raise ValueError('not an amount: %d' % value)
    return value


def put(name, device, facts):
    lines.append(' '.join(['+', name, str(device)] +
                          ['%s=%s' % (key, clean(facts[key])) for key in facts]))


def give_up(name, problem):
    try:
        words = clean('%s: %s' % (type(problem).__name__, problem), ' ')
    except BaseException:
        words = 'an exception without words'
    lines.append('- %s %s' % (name, words))


MOST_BLOCKS = 20000
LARGE_PAGE, SMALL_PAGE = 20 << 20, 2 << 20


def whole_pages(segment, block):
    # Expandable segments are given back by pages, counted from the segment's beginning.
    page = SMALL_PAGE if segment['segment_type'] == 'small' else LARGE_PAGE
    start = block['address'] - segment['address']
    first = -(-start // page) * page
    last = (start + number(block['size'])) // page * page
    return max(0, last - first)


def with_addresses(segment):
    at = segment['address']
    for block in segment['blocks']:
        if 'address' not in block:
            block = dict(block, address=at)
        yield block
        at = block['address'] + block['size']


def map_segment(facts, segment):
    unused = [b for b in with_addresses(segment) if b['state'] == 'inactive']
    sizes = [number(b['size']) for b in unused]
    shared = tuple(segment.get('segment_pool_id', (0, 0))) == (0, 0)
    free = sum(sizes)
    total = number(segment['total_size'])
    facts['segments'] += 1
    facts['free_blocks'] += len(sizes)
    facts['mapped'] += total
    facts['mapped_free'] += free
    facts['largest'] = max([facts['largest']] + sizes)
    if shared:
        facts['fitting'] += sum(size for size in sizes if size >= asked)
    if free and free < total:
        facts['pinned'] += 1
        facts['pieces'] += len(sizes)
        facts['piece_bytes'] += free
    if not shared:
        return
    if segment.get('is_expandable'):
        facts['releasable'] += sum(whole_pages(segment, b) for b in unused)
    elif free == total:
        facts['releasable'] += total


def map_of(segments, device):
    facts = dict.fromkeys(['segments', 'free_blocks', 'mapped', 'mapped_free', 'largest', 'fitting', 'pinned',
                           'pieces', 'piece_bytes', 'releasable'], 0)
    for segment in segments:
        if segment['device'] == device:
            map_segment(facts, segment)
    return facts


def torch_stats(cuda, device):
    stats = cuda.memory_stats(device)
    current = lambda key: number(stats[key + '.all.current'])
    return {'reserved': current('reserved_bytes'), 'used': current('allocated_bytes'),
            'active': current('active_bytes'), 'split': current('inactive_split_bytes'),
            'blocks': current('active') + current('inactive_split') + current('segment')}


def torch_backend(cuda):
    try:
        return cuda.get_allocator_backend()
    except Exception:
        return ''


def torch_limit(cuda, device):
    try:
        return {'limited': int(cuda.get_per_process_memory_fraction(device) < 1)}
    except Exception:  # older ones do not tell
        return {}


def torch_map(torch, stats):
    # Segments and settings, or None: with a recorded history, or so many blocks, it takes long.
    if sum(facts['blocks'] for facts in stats.values()) > MOST_BLOCKS:
        lines.append('- torch more than %d blocks: not looked at one by one' % MOST_BLOCKS)
        return None, {}
    recorded = getattr(getattr(torch, '_C', None), '_cuda_isHistoryEnabled', None)
    if recorded is not None and recorded():
        try:
            return torch.cuda.memory_snapshot(include_traces=False), {}
        except TypeError:
            lines.append('- torch its blocks are not looked at while it records its history')
            return None, {}
    whole = getattr(torch.cuda.memory, '_snapshot', None)
    if whole is None:
        return torch.cuda.memory_snapshot(), {}
    whole = whole()
    return whole['segments'], whole.get('allocator_settings') or {}


def add_map(facts, found):
    # Blocks that do not sum up to the statistics are of another moment.
    if found['mapped'] != facts['reserved'] or \
            found['mapped_free'] > facts['reserved'] - facts['used']:
        return
    del found['mapped'], found['mapped_free']
    facts.update(found, map=1)


def add_settings(facts, settings, segments):
    conf = settings.get('PYTORCH_CUDA_ALLOC_CONF') or settings.get('PYTORCH_ALLOC_CONF')
    if conf:
        facts['settings'] = ''.join(str(conf).split())
    threshold = settings.get('garbage_collection_threshold')
    if threshold is not None:
        facts['collects'] = int(threshold > 0)
    expandable = settings.get('expandable_segments')
    if expandable is None and any(s.get('is_expandable') for s in segments or ()):
        expandable = True
    if expandable is not None:
        facts['expandable'] = int(bool(expandable))
    split = settings.get('max_split_size')
    if split is not None:
        facts['max_split'] = int(0 <= split < 1 << 62)


def ask_torch(torch):
    if not torch.cuda.is_initialized():
        return
    stats = {device: torch_stats(torch.cuda, device) for device in devices}
    backend = torch_backend(torch.cuda)
    pools = backend == 'cudaMallocAsync'
    segments, settings = None, {}
    if not pools:
        try:
            segments, settings = torch_map(torch, stats)
        except Exception as problem:
            give_up('torch', problem)
    for device, facts in stats.items():
        facts.update(torch_limit(torch.cuda, device))
        if segments is not None:
            try:
                add_map(facts, map_of(segments, device))
                add_settings(facts, settings, segments)
            except Exception as problem:
                give_up('torch', problem)
        put('torch', device, dict(facts, backend=backend, pools=int(pools)))


def write_new(os, path, data):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view):]
        os.fsync(fd)
    finally:
        os.close(fd)


def pickle_torch(torch, path):
    if not torch.cuda.is_initialized():
        return
    os, pickle = modules['os'], modules['pickle']
    data = pickle.dumps(torch.cuda.memory._snapshot(), 4)
    ours = []
    try:
        write_new(os, path, b'')  # the name is ours; the file appears whole or not at all
        ours.append(path)
        write_new(os, path + '.tmp', data)
        ours.append(path + '.tmp')
        os.rename(path + '.tmp', path)
    except BaseException:
        for left in ours:
            os.unlink(left)
        raise
    lines.append('= ' + path)


def ask_cupy(cupy):
    pool = cupy.get_default_memory_pool()
    pinned = number(cupy.get_default_pinned_memory_pool().n_free_blocks())
    for device in devices:
        with cupy.cuda.Device(device):
            facts = {'reserved': number(pool.total_bytes()), 'used': number(pool.used_bytes()),
                     'free_blocks': number(pool.n_free_blocks()), 'pinned_free': pinned}
            if hasattr(pool, 'get_limit'):
                facts['limit'] = number(pool.get_limit())
                facts['limited'] = int(facts['limit'] > 0)
        if facts['used'] == 0:  # then each of its blocks is whole again
            facts['releasable'] = facts['reserved']
        put('cupy', device, facts)


MOST_LINES, MOST_SAMPLES = 64, 20000


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    # Number and value of each field of a protobuf message; a value is a number or bytes.
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            size, at = varint(data, at)
            value = data[at:at + size]
            at += size
        else:
            raise ValueError('not a profile')
        yield key >> 3, value


def numbers(value):
    # One, or several that are packed.
    at = 0
    if isinstance(value, int):
        yield value
        return
    while at < len(value):
        one, at = varint(value, at)
        yield one


def is_installed(path):  # as code_place.h has it
    return path.startswith('<') or '-packages/' in path or '/lib/python3' in path


class Profile:
    # A pprof profile: who holds how much, by the newest line that is the program's own.
    def __init__(self, data):
        self.strings, self.samples, self.places, self.functions = [], [], {}, {}
        for field, value in fields(data):
            if field == 2:
                self.samples.append(value)
            elif field == 4:
                place = list(fields(value))
                lines = [dict(fields(of)) for name, of in place if name == 4]
                self.places[dict(place)[1]] = lines[0] if lines else {}
            elif field == 5:
                function = dict(fields(value))
                self.functions[function[1]] = function
            elif field == 6:
                self.strings.append(value.decode('utf-8', 'replace'))
        self.labels = {}

    def label_of(self, place):
        # Of a line of the program; '' for one of a package.
        if place not in self.labels:
            line = self.places.get(place, {})
            function = self.functions.get(line.get(1), {})
            path = self.strings[function.get(4, 0)]
            self.labels[place] = '' if is_installed(path) or not path else '%s:%d %s' % (
                path.rpartition('/')[2], line.get(2, 0), self.strings[function.get(2, 0)])
        return self.labels[place]

    def sample(self, data):
        label, amounts, marks = '', [], {}
        for field, value in fields(data):
            if field == 1 and not label:
                label = next(filter(None, map(self.label_of, numbers(value))), '')
            elif field == 2:
                amounts.extend(numbers(value))
            elif field == 3:
                mark = dict(fields(value))
                marks[self.strings[mark.get(1, 0)]] = self.strings[mark.get(2, 0)]
        return label, amounts, marks


def device_of(mark, ordinals):
    # "cuda:0"; other names, as older versions have them, are clear where there is one device.
    if len(ordinals) == 1 and not mark.startswith('cpu'):
        return min(ordinals.values())
    return ordinals.get(mark)


def sum_up(profile, ordinals):
    # {(device, part, label): [bytes, count]}
    sums = {}
    for data in profile.samples:
        label, (count, size), marks = profile.sample(data)
        device = device_of(marks.get('device', ''), ordinals)
        if marks.get('kind') == 'executable':
            device, key = min(ordinals.values()), ('programs', 'compiled programs')
        else:
            key = 'arrays', label or 'no line of the program'
        if device is not None and size:
            held = sums.setdefault((device,) + key, [0, 0])
            held[0] += number(size)
            held[1] += number(count)
    return sums


def put_lines(name, sums):
    # The rest in one line for each device, so that all add up.
    largest = sorted(sums, key=lambda key: (key[1] != 'arrays', -sums[key][0]))
    rest = {}
    for place, key in enumerate(largest):
        if key[1] == 'arrays' and place >= MOST_LINES:
            held = rest.setdefault(key[0], [0, 0, 0])
            rest[key[0]] = [held[0] + sums[key][0], held[1] + sums[key][1], held[2] + 1]
            continue
        lines.append('* %s %d %s %d %d %s' % (name, key[0], key[1], sums[key][0], sums[key][1],
                                              clean(key[2], ' ')[-120:]))
    for device, (size, count, places) in rest.items():
        lines.append('* %s %d rest %d %d %d other lines' % (name, device, size, count, places))


def jax_lines(jax, ordinals):
    profiler, zlib = getattr(jax, 'profiler', None), modules.get('zlib')
    if not ordinals or profiler is None or zlib is None:
        return
    profile = Profile(zlib.decompress(profiler.device_memory_profile(), 31))
    if len(profile.samples) > MOST_SAMPLES:
        lines.append('- jax more than %d places that hold memory: not looked at one by one' %
                     MOST_SAMPLES)
    else:
        put_lines('jax', sum_up(profile, ordinals))


def ask_jax(jax):
    ordinals = {}
    bridge = modules.get('jax._src.xla_bridge')
    clients = dict(bridge._backends) if bridge is not None else {}
    for name in clients:
        if name not in ('cuda', 'gpu'):
            continue
        for place in clients[name].local_devices():
            stats = place.memory_stats()
            if not stats or int(place.local_hardware_id) not in devices:
                continue
            facts = {'reserved': number(stats['pool_bytes']),
                     'used': number(stats['bytes_in_use'])}
            if stats.get('largest_free_block_bytes'):
                facts['largest'] = number(stats['largest_free_block_bytes'])
            facts['limit'] = number(stats.get('bytes_limit', 0))
            put('jax', int(place.local_hardware_id), facts)
            ordinals['%s:%d' % (name, getattr(place, 'id', -1))] = int(place.local_hardware_id)
    jax_lines(jax, ordinals)


def ask(name, function, *more):
    module = modules.get(name)
    if name not in who or module is None:
        return
    try:
        function(module, *more)
    except BaseException as problem:
        give_up(name, problem)


def ask_all():
    ask('torch', ask_torch)
    ask('cupy', ask_cupy)
    ask('jax', ask_jax)
    if snapshot:
        ask('torch', pickle_torch, snapshot)


# Whatever a collection would end may need locks that somebody holds who waits for this answer.
gc = modules.get('gc')
collecting = gc is not None and gc.isenabled()
try:
    if collecting:
        gc.disable()
    ask_all()
finally:
    if collecting:
        gc.enable()
answer = '\n'.join(lines + ['.'])  # never empty: they were asked
