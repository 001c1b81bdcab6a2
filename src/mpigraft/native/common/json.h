/* Strings of foreign origin as JSON in ASCII. Bytes that are not UTF-8 become lone surrogates
 * (\udcXX), which is how Python names undecodable bytes of a path. */
#ifndef MPIGRAFT_JSON_H
#define MPIGRAFT_JSON_H

#include <stdio.h>
#include <string.h>

/* The character of `length` bytes at `s`, or -1 where there is none. */
static inline long utf8_character(const unsigned char *s, size_t length)
{
    static const long least[] = {0, 0, 0x80, 0x800, 0x10000};
    long character = s[0] & (0xFF >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return -1;
        character = character << 6 | (s[i] & 0x3F);
    }
    if (character < least[length] || character > 0x10FFFF ||
        (character >= 0xD800 && character <= 0xDFFF))
        return -1; /* overlong, beyond Unicode, or half of a pair */
    return character;
}

static inline void json_string(FILE *out, const char *text)
{
    putc('"', out);
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t length = *s < 0xC0 ? 1 : *s < 0xE0 ? 2 : *s < 0xF0 ? 3 : *s < 0xF8 ? 4 : 1;
        long character = length > 1 ? utf8_character(s, length) : -1;
        if (character >= 0x10000)
            fprintf(out, "\\u%04lx\\u%04lx", 0xD7C0 + (character >> 10),
                    0xDC00 + (character & 0x3FF));
        else if (character >= 0)
            fprintf(out, "\\u%04lx", character);
        else if (*s >= 0x80)
            fprintf(out, "\\udc%02x", *s);
        else if (*s < 0x20 || *s == 0x7F)
            fprintf(out, "\\u%04x", *s);
        else if (*s == '"' || *s == '\\')
            fprintf(out, "\\%c", *s);
        else
            putc(*s, out);
        s += character >= 0 ? length : 1;
    }
    putc('"', out);
}

#endif
