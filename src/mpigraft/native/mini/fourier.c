/* Fourier transforms of any length, without a library: mixed radix, recursively. */
#include "mini.h"

/* Cosine and sine of a part of a right angle, 0 to 1, by their series on half of it. */
struct complex turned(double part)
{
    double x = (part > 0.5 ? 1 - part : part) * 1.57079632679489661923, term = 1;
    double cosine = 0, sine = 0;
    for (int k = 0; k < 20; k++) {
        double sign = k % 4 < 2 ? 1 : -1;
        if (k % 2)
            sine += sign * term;
        else
            cosine += sign * term;
        term *= x / (k + 1);
    }
    return part > 0.5 ? (struct complex){sine, cosine} : (struct complex){cosine, sine};
}

struct fourier make_fourier(int length)
{
    struct fourier made = {length, need((size_t)length, sizeof *made.root),
                           need(2 * (size_t)length, sizeof *made.work)};
    for (int k = 0; k < length; k++) {
        long long quarter = 4LL * k / length;
        struct complex t = turned((double)(4LL * k - quarter * length) / length);
        struct complex by_quarter[] = {{t.real, -t.imaginary}, {-t.imaginary, -t.real},
                                       {-t.real, t.imaginary}, {t.imaginary, t.real}};
        made.root[k] = by_quarter[quarter];
    }
    return made;
}

void free_fourier(struct fourier *fourier)
{
    free(fourier->root);
    free(fourier->work);
}

/* The sum of `count` values, `apart` from each other, each times a root: the `step`-th next one. */
static struct complex rooted_sum(const struct fourier *plan, const struct complex *value,
                                 int count, int apart, int step, bool back)
{
    struct complex sum = {0, 0};
    for (int k = 0; k < count; k++) {
        struct complex w = plan->root[(long long)k * step % plan->length];
        double imaginary = back ? -w.imaginary : w.imaginary;
        const struct complex *v = &value[(long long)k * apart];
        sum.real += v->real * w.real - v->imaginary * imaginary;
        sum.imaginary += v->real * imaginary + v->imaginary * w.real;
    }
    return sum;
}

/* Transform `length` values of `in`, `stride` apart, into `out`; `work` has room for as many. */
static void transform_part(const struct fourier *plan, int length, int stride,
                           const struct complex *in, struct complex *out, struct complex *work,
                           bool back)
{
    int prime = 2;
    while (prime < length && length % prime)
        prime++;
    if (length == 1) {
        *out = *in;
        return;
    }
    int part = length / prime;
    for (int k = 0; k < prime; k++)
        transform_part(plan, part, stride * prime, in + (long long)k * stride, work + k * part,
                       out + k * part, back);
    for (int q = 0; q < length; q++)
        out[q] = rooted_sum(plan, work + q % part, prime, part,
                            (int)((long long)stride * q % plan->length), back);
}

/* In place; `back` is the inverse, not divided by the length. */
void fourier_transform(const struct fourier *plan, struct complex *value, bool back)
{
    transform_part(plan, plan->length, 1, value, plan->work, plan->work + plan->length, back);
    memcpy(value, plan->work, (size_t)plan->length * sizeof *value);
}
