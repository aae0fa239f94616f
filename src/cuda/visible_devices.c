#include "visible_devices.h"

#include <stddef.h>
#include <string.h>

#include "../base/text.h"

enum match { NO_DEVICE, ANOTHER, THIS };

/* A UUID may be cut short as long as only one device has that beginning. */
static enum match match(const char *item, size_t length, uint32_t index, const char *uuid)
{
    uint64_t number;
    int error;

    if (length > 4 && strncmp(item, "GPU-", 4) == 0)
        return strncmp(item, uuid, length) == 0 ? THIS : ANOTHER;
    if (length == 0 || gos_text_parse_digits(item, &number, &error) != item + length)
        return NO_DEVICE;
    return number == index ? THIS : ANOTHER;
}

/* What follows an item that names no device is without effect. */
bool gos_visible_ordinal(const char *visible, uint32_t index, const char *uuid, uint32_t *ordinal)
{
    *ordinal = visible ? 0 : index;
    while (visible) {
        visible += strspn(visible, " ");
        size_t length = strcspn(visible, ", ");
        enum match found = match(visible, length, index, uuid);
        if (found != ANOTHER)
            return found == THIS;
        visible += length + strspn(visible + length, " ");
        if (*visible++ != ',')
            return false;
        (*ordinal)++;
    }
    return true;
}
