/*
 * The script that asks.  Its globals: `modules`; `who`, names with blanks;
 * `devices`, ordinals with blanks; `asked`, bytes of the request; `snapshot`, a
 * path or "".  Its `answer`, line by line:
 *
 *     + NAME DEVICE key=value …   what it says; values without blanks
 *     - NAME words                why it says nothing
 *     * NAME DEVICE PART BYTES COUNT words   what a line of the program holds there;
 *                                 PART: arrays, programs, rest; the largest first
 *     = PATH                      where torch's snapshot went
 *
 * Written for Python 3.8 and later.
 */
#ifndef GOS_OBSERVE_FRAMEWORKS_SCRIPT_H
#define GOS_OBSERVE_FRAMEWORKS_SCRIPT_H

extern const char gos_frameworks_script[];

#endif
