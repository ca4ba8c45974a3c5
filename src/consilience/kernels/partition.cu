// The partition inference on a GPU: the loops of numba_partition and numba_relocate in linear weights (`weights` says how).
// A thread takes an object; sums are of integers, so that any order of threads gives the same bits.
//
// Defined when compiled: SWEEPS, whether it is `partition` that is wanted, or `relocate`; DEPTH and WIDTH, the most claims and
// candidates of an object; LABELS; INDEX and VALUE, types that hold a place in the table and one in a domain; LABELLED,
// whether labels are others than those places; IN_SHARED, whether shared memory has room for the groups; THREADS of a block
// that relocates, and SWEEPING, RESIDENT of one that sweeps.

#define KINDS 2
#define FEW 8      // labels whose shares every thread sums for itself
#define TERMS 10   // words: slopes of the counts and the bound
#define UNITS 1073741824.0
#define PLACES 64  // of values in a key, a power of two: a key is taken apart without division
#define LEAST 1e-150
#define OF_ITS_OWN 0.1  // as in numpy_partition
#define SMALL 1e-100
#define LARGE 1e100
#define NONE 0x7fffffff  // no key
#define INFINITE __longlong_as_double(0x7ff0000000000000ll)

typedef unsigned long long Word;

// A voice is a row of what a group is like, by kind: u, 1 - u, the sum of (1 - u) ξ, and (1 - u) ξ of every label; then
// nothing, as rows of an odd length lie best in shared memory.
#define VOICE ((3 + LABELS) * KINDS + 1)
#define RIGHT(g, d) given.voice[(long long)(g) * VOICE + (d)]
#define WRONG(g, d) given.voice[(long long)(g) * VOICE + KINDS + (d)]
#define HABITS(g, d) given.voice[(long long)(g) * VOICE + 2 * KINDS + (d)]
#define HABIT(g, label, d) given.voice[(long long)(g) * VOICE + (3 + (label)) * KINDS + (d)]

// What a pair with a single claim says (`weights.Singles`): of a value that it does not claim, and how many times as much of
// its claim. Only where labels are common to all objects.
#define SINGLE (LABELS > 1 ? LABELS * 2 * KINDS : 0)
#define SAYS_REST(g, label, d) given.single[(long long)(g) * SINGLE + (label) * 2 * KINDS + (d)]
#define RATIO(g, label, d) given.single[(long long)(g) * SINGLE + (label) * 2 * KINDS + KINDS + (d)]

// Tables by the number of claims. E is not scaled: of as few claims as a thread can keep it is no large number.
#define E(n) given.counts[4 * (n)]
#define AS_FALSE(n) given.counts[4 * (n) + 1]
#define SLOPE_TRUE(n) given.counts[4 * (n) + 2]
#define SLOPE_FALSE(n) given.counts[4 * (n) + 3]

// The objects. Arrays that would say the same of all of them are left out: a truth as probable as any other, the label
// that is the place in the domain, no truth but those claimed.
struct Objects {
    const int *source;
    const VALUE *value;
    const INDEX *first_claim, *first_candidate;
    const double *log_truth;
    const int *label;
    const double *log_unclaimed;
};

struct Given {
    const int *group;
    const double *voice, *single, *counts;
    const int *first_total;
    const double *totals, *share;
    double eta, theta, log_eta;
};

// An object's claims as group × PLACES + value, sorted. They have an index, and so are not in registers; nothing that
// could be may be in one struct with them.
struct Keys {
    int at[DEPTH];
};

// An object. While its pairs are heard q is yet to be multiplied by `scale`; no q has grown more than `grown` times, and
// exp(log_scale) has been taken out.
struct Apart {
    int n, size, domain;
    INDEX start;
    double q[WIDTH][KINDS], q_unclaimed[KINDS];
    double scale[KINDS], grown, log_scale;
};

// A pair, its claims from `first` on. A cell is a run of equal keys: it is found anew rather than kept, as what a thread
// keeps besides its registers is far away.
struct Pair {
    int group, first, past;
    double careless[KINDS], says_rest[KINDS];
};

// Small domains are kept in registers, which have no index: every place is looked at.
__device__ double get(const Apart &apart, int k, int d) {
#if WIDTH <= 8
    double q = 0.0;
#pragma unroll
    for (int i = 0; i < WIDTH; i++) q = i == k ? apart.q[i][d] : q;
    return q;
#else
    return apart.q[k][d];
#endif
}

__device__ void multiply(Apart &apart, int k, int d, double x) {
#if WIDTH <= 8
#pragma unroll
    for (int i = 0; i < WIDTH; i++) apart.q[i][d] *= i == k ? x : 1.0;
#else
    apart.q[k][d] *= x;
#endif
}

// Loops over all that an object may have: written out where it is little, which is then kept in registers.
#define LITTLE 16
#if WIDTH <= LITTLE
#define ALL(k) _Pragma("unroll") for (int k = 0; k < WIDTH; k++) if (k < apart.size)
#else
#define ALL(k) _Pragma("unroll 1") for (int k = 0; k < apart.size; k++)
#endif
#if DEPTH <= LITTLE
#define CLAIMS(i) _Pragma("unroll") for (int i = 0; i < DEPTH; i++)
#else
#define CLAIMS(i) _Pragma("unroll 1") for (int i = 0; i < DEPTH; i++)
#endif

__device__ int votes_at(const Keys &keys, const Pair &pair, int c) {
    int past = c + 1;
    while (past < pair.past && keys.at[past] == keys.at[c]) past++;
    return past - c;
}

// The cells of a pair: where each begins, and its votes.
#define CELLS(c, votes) \
    for (int c = pair.first, votes; c < pair.past && (votes = votes_at(keys, pair, c)); c += votes)

__device__ int label_of(const Objects &objects, const Apart &apart, int k) {
    if (LABELS == 1) return 0;
    return LABELLED ? objects.label[apart.start + k] : k;
}

// Loads come first, all at once, and sorting is a network: nothing waits for memory, and no thread for another.
__device__ __forceinline__ void sort_claims(long long m, long long without, const Objects &objects, const Given &given,
                                            Apart &apart, int (&key)[DEPTH]) {
    const INDEX first = objects.first_claim[m], n = objects.first_claim[m + 1] - first;
    apart.start = objects.first_candidate[m];
    apart.size = (int)(objects.first_candidate[m + 1] - apart.start);
    apart.domain = apart.size + (objects.log_unclaimed && objects.log_unclaimed[m] > -INFINITE);
    apart.n = (int)n - (without >= 0);
    CLAIMS(i) key[i] = i < n ? objects.source[first + i] : 0;
    CLAIMS(i) {
        int of = given.group[key[i]] * PLACES + (i < n ? objects.value[first + i] : 0);
        key[i] = i < n && first + i != without ? of : NONE;
    }
#if DEPTH > LITTLE
    for (int i = 1; i < n; i++) {
        const int now = key[i];
        int j = i;
        for (; j > 0 && key[j - 1] > now; j--) key[j] = key[j - 1];
        key[j] = now;
    }
#else
    // Batcher's merge sort, of any number of keys.
#pragma unroll
    for (int run = 1; run < DEPTH; run *= 2)
#pragma unroll
        for (int far = run; far > 0; far /= 2)
#pragma unroll
            for (int i = 0; i + far < DEPTH; i++)
                if (i >= far % run && (i - far % run) / far % 2 == 0 && i / (2 * run) == (i + far) / (2 * run)) {
                    int low = min(key[i], key[i + far]), high = max(key[i], key[i + far]);
                    key[i] = low;
                    key[i + far] = high;
                }
#endif
}

// Of sorted claims those that are the only ones of their group stay in `key`, which has NONE in place of the others; the
// others go to `keys`, and apart.n is their number. Returns how many stay.
__device__ __forceinline__ int set_aside(Apart &apart, int (&key)[DEPTH], Keys &keys) {
    int n_lone = 0, n_left = 0, before = NONE;
    CLAIMS(i) {
        const int now = key[i], after = i + 1 < DEPTH ? key[i + 1] : NONE;
        const bool lone = SINGLE && now / PLACES != before / PLACES && now / PLACES != after / PLACES;
        if (i < apart.n) {
            if (lone)
                n_lone++;
            else
                keys.at[n_left++] = now;
        }
        if (!lone) key[i] = NONE;
        before = now;
    }
    apart.n = n_left;
    return n_lone;
}

// The pair that begins with claim j, and what it says; returns where the next one begins.
__device__ int speak(int j, const Objects &objects, const Given &given, const Apart &apart, const Keys &keys, Pair &pair) {
    const int g = keys.at[j] / PLACES, base = g * PLACES;
    pair.group = g, pair.first = j;
    while (j < apart.n && keys.at[j] < base + PLACES) j++;
    pair.past = j;
    for (int d = 0; d < KINDS; d++) pair.careless[d] = HABITS(g, d);
    const double even = LABELS > 1 ? 1.0 : 1.0 / apart.domain;
    CELLS(c, votes) {
        const int label = label_of(objects, apart, keys.at[c] - base);
        const double gained = (E(votes) - 1.0) * even;
        for (int d = 0; d < KINDS; d++) pair.careless[d] += HABIT(g, label, d) * gained;
    }
    for (int d = 0; d < KINDS; d++) pair.says_rest[d] = fmax(RIGHT(g, d) + pair.careless[d], LEAST);
    return j;
}

__device__ double says(const Given &given, const Pair &pair, double weight, int d) {
    return fmax(RIGHT(pair.group, d) * weight + pair.careless[d], LEAST);
}

// p(d, z) and p(d, unclaimed), before anybody speaks.
__device__ void before(long long m, const Objects &objects, const Given &given, Apart &apart) {
    apart.grown = 1.0, apart.log_scale = 0.0;
    for (int d = 0; d < KINDS; d++) {
        apart.scale[d] = given.share[d] > 0.0;  // a kind that does not occur must not set the scale
        apart.q_unclaimed[d] = apart.domain > apart.size ? given.share[d] * exp(objects.log_unclaimed[m]) : 0.0;
        ALL(k) {
            double q = given.share[label_of(objects, apart, k) * KINDS + d];
            apart.q[k][d] = objects.log_truth ? q * exp(objects.log_truth[apart.start + k]) : q;
        }
    }
}

// Scale what has been said before it can leave the range of numbers: what one pair says is far from its ends.
__device__ void keep_in_range(Apart &apart) {
    const double highest = fmax(apart.scale[0], apart.scale[1]);
    if (apart.grown < LARGE && SMALL < highest && highest < LARGE) return;
    double largest = 0.0;
    for (int d = 0; d < KINDS; d++) {
        largest = fmax(largest, apart.q_unclaimed[d] * apart.scale[d]);
        ALL(k) largest = fmax(largest, apart.q[k][d] * apart.scale[d]);
    }
    if (largest < 1e-290) largest = 1e-290;
    apart.log_scale += log(largest);
    for (int d = 0; d < KINDS; d++) {
        const double by = apart.scale[d] / largest;
        apart.scale[d] = apart.scale[d] > 0.0;
        apart.q_unclaimed[d] *= by;
        ALL(k) apart.q[k][d] *= by;
    }
    apart.grown = 1.0;
}

__device__ __forceinline__ void hear_singles(const int (&key)[DEPTH], const Objects &objects, const Given &given,
                                             Apart &apart) {
    CLAIMS(i) {
        if (key[i] == NONE) continue;
        const int g = key[i] / PLACES, k = key[i] % PLACES, label = label_of(objects, apart, k);
        for (int d = 0; d < KINDS; d++) {
            const double ratio = RATIO(g, label, d);
            apart.scale[d] *= SAYS_REST(g, label, d);
            apart.grown *= ratio;
            multiply(apart, k, d, ratio);
        }
        keep_in_range(apart);
    }
}

__device__ void hear_pairs(const Objects &objects, const Given &given, Apart &apart, const Keys &keys, Pair &pair) {
    for (int j = 0; j < apart.n;) {
        j = speak(j, objects, given, apart, keys, pair);
        for (int d = 0; d < KINDS; d++) apart.scale[d] *= pair.says_rest[d];
        CELLS(c, votes) {
            const double weight = E(votes);
            for (int d = 0; d < KINDS; d++) {
                const double ratio = says(given, pair, weight, d) / pair.says_rest[d];
                apart.grown *= ratio;
                multiply(apart, keys.at[c] - pair.group * PLACES, d, ratio);
            }
        }
        keep_in_range(apart);
    }
}

// q(d, z) and q(d, unclaimed), of which all has been said; returns the object's part of the bound, but for the factors that
// all z share.
__device__ double normalise(Apart &apart) {
    double total = 0.0;
    for (int d = 0; d < KINDS; d++) {
        total += apart.q_unclaimed[d] *= apart.scale[d];
        ALL(k) total += apart.q[k][d] *= apart.scale[d];
    }
    const double per_total = 1.0 / total;
    for (int d = 0; d < KINDS; d++) {
        apart.q_unclaimed[d] *= per_total;
        ALL(k) apart.q[k][d] *= per_total;
    }
    return apart.log_scale + log(total);
}

__device__ long long fixed(double x, double per_unit) { return __double2ll_rn(x * per_unit); }

#if SWEEPS
// A sum in 64 bits; IN_SHARED memory, which adds 32 at a time, with a carry.
__device__ void add(unsigned *parts, int n, Word *sums, int i, long long x) {
    if (!IN_SHARED) {
        atomicAdd(sums + i, (Word)x);
        return;
    }
    unsigned low = (unsigned)x, high = (unsigned)(x >> 32);
    high += atomicAdd(parts + i, low) + low < low;
    if (high) atomicAdd(parts + n + i, high);
}

// The same of a sum of probabilities, which take less than 32 bits each.
__device__ void add_probability(unsigned *parts, int n, Word *sums, int i, unsigned x) {
    if (!IN_SHARED)
        atomicAdd(sums + i, (Word)x);
    else if (atomicAdd(parts + i, x) + x < x)
        atomicAdd(parts + n + i, 1u);
}

__device__ unsigned probability(double q) { return __double2uint_rn(q * UNITS); }

// The sum over a warp, known to all its threads: of three parts of a word, whose sums take less than 32 bits.
__device__ long long sum_of_lanes(Word x) {
    const Word low = __reduce_add_sync(0xffffffffu, (unsigned)(x & 0x3fffff));
    const Word middle = __reduce_add_sync(0xffffffffu, (unsigned)(x >> 22 & 0x3fffff));
    return low + (middle << 22) + ((Word)__reduce_add_sync(0xffffffffu, (unsigned)(x >> 44)) << 44);
}

__device__ void add_term(long long *term, double x) {
    double coarse = rint(x * 1048576.0);
    term[0] += (long long)coarse;
    term[1] += fixed(x - coarse / 1048576.0, 1125899906842624.0);
}

// `sums` has a row for each group: Σ q(r, d), the factor of all habits, Σ q(opinion, r = 0, d) less that, and of pairs with a
// single claim by its label Σ q(d, the claim is true), Σ q(d = 0) and their number; then shares; then the slopes of the counts and the bound, in two words each. A block adds up what its threads find in `turns` objects
// each before it adds to `sums`: where all blocks add, they wait for each other.
extern "C" __global__ void __launch_bounds__(SWEEPING, RESIDENT) partition(
    const int *source, const VALUE *value, const INDEX *first_claim, const INDEX *first_candidate, const double *log_truth,
    const int *label, const double *log_unclaimed, const int *group, const double *voice, const double *single, const double *counts,
    const int *first_total, const double *totals, const double *share, const double *scalars, int n_objects, int n_groups,
    int turns, double *truth, Word *sums
) {
    const Objects objects = {source, value, first_claim, first_candidate, log_truth, label, log_unclaimed};
    const int of_singles = (3 + LABELS) * KINDS, row = of_singles + SINGLE, n_sums = n_groups * row + LABELS * KINDS + TERMS;
#if IN_SHARED
    extern __shared__ unsigned parts[];
    double *near_voice = (double *)(parts + 2 * n_sums), *near_single = near_voice + n_groups * VOICE;
    for (int i = threadIdx.x; i < 2 * n_sums; i += blockDim.x) parts[i] = 0;
    for (int i = threadIdx.x; i < n_groups * VOICE; i += blockDim.x) near_voice[i] = voice[i];
    for (int i = threadIdx.x; i < n_groups * SINGLE; i += blockDim.x) near_single[i] = single[i];
    __syncthreads();
    const Given given = {group, near_voice, near_single, counts, first_total, totals, share,
                         scalars[0], scalars[1], scalars[2]};
#else
    unsigned *const parts = nullptr;
    const Given given = {group, voice, single, counts, first_total, totals, share, scalars[0], scalars[1], scalars[2]};
#endif
    Apart apart;
    Keys keys;
    Pair pair;
    int key[DEPTH];
    for (int turn = 0; turn < turns; turn++) {
        const long long m = (blockIdx.x * (long long)turns + turn) * blockDim.x + threadIdx.x;
        long long words[TERMS + FEW * KINDS] = {};
        if (m < n_objects) {
            sort_claims(m, -1, objects, given, apart, key);
            const int n_lone = set_aside(apart, key, keys);
            before(m, objects, given, apart);
            hear_singles(key, objects, given, apart);
            hear_pairs(objects, given, apart, keys, pair);
            double evidence = normalise(apart);
            double of_kind[KINDS], claimed = 0.0;
#pragma unroll
            for (int d = 0; d < KINDS; d++) {
                of_kind[d] = apart.q_unclaimed[d];
                if (apart.domain > apart.size)
                    add_probability(parts, n_sums, sums, n_groups * row + d, probability(apart.q_unclaimed[d]));
                ALL(k) {
                    const double q = apart.q[k][d];
                    const int at = label_of(objects, apart, k) * KINDS + d;
                    of_kind[d] += q;
                    claimed += q;
                    if (LABELS > FEW)
                        add_probability(parts, n_sums, sums, n_groups * row + at, probability(q));
                    else
                        words[TERMS + at] += probability(q);
                }
            }
            ALL(k) truth[apart.start + k] = claimed > 0.0 ? (apart.q[k][0] + apart.q[k][1]) / claimed : 1.0 / apart.size;

            const int of_one = given.first_total[apart.domain] + 1;
            double slope_all = 0.0, gain_true = 0.0, gain_false = 0.0;
            if (n_lone) {
                evidence += n_lone * (given.log_eta - given.totals[2 * of_one]);
                slope_all = n_lone * given.totals[2 * of_one + 1];
            }
            const unsigned first_kind = probability(of_kind[0]);
            CLAIMS(i) {
                if (key[i] == NONE) continue;
                const int k = key[i] % PLACES, label = label_of(objects, apart, k);
                const int at = key[i] / PLACES * row + of_singles + label * 2 * KINDS;
                for (int d = 0; d < KINDS; d++)
                    add_probability(parts, n_sums, sums, at + d, probability(get(apart, k, d)));
                add_probability(parts, n_sums, sums, at + KINDS, first_kind);
                add_probability(parts, n_sums, sums, at + KINDS + 1, 1);
            }
            const double even = LABELS > 1 ? 1.0 : 1.0 / apart.domain;
            for (int j = 0; j < apart.n;) {
                j = speak(j, objects, given, apart, keys, pair);
                const int g = pair.group, base = g * PLACES, at = given.first_total[apart.domain] + j - pair.first;
                evidence -= given.totals[2 * at];
                slope_all += given.totals[2 * at + 1];
                double reliable[KINDS] = {}, elsewhere[KINDS], per_habit[KINDS], right_here[KINDS];
                int n_cells = 0;
                for (int d = 0; d < KINDS; d++) elsewhere[d] = of_kind[d];
                CELLS(c, votes) {
                    n_cells++;
                    for (int d = 0; d < KINDS; d++) {
                        const double here = get(apart, keys.at[c] - base, d), weight = E(votes);
                        elsewhere[d] -= here;
                        right_here[d] = here * weight / says(given, pair, weight, d);
                        reliable[d] += right_here[d];
                    }
                }
                for (int d = 0; d < KINDS; d++) {
                    reliable[d] = RIGHT(g, d) * (reliable[d] + fmax(elsewhere[d], 0.0) / pair.says_rest[d]);
                    const double careless = fmax(of_kind[d] - reliable[d], 0.0);
                    add(parts, n_sums, sums, g * row + 2 * d, fixed(careless, UNITS));
                    add(parts, n_sums, sums, g * row + 2 * d + 1, fixed(reliable[d], UNITS));
                    per_habit[d] = careless / fmax(pair.careless[d], LEAST);
                    if (LABELS > 1)
                        add(parts, n_sums, sums, g * row + 2 * KINDS + d, fixed(per_habit[d] * WRONG(g, d), UNITS));
                }
                CELLS(c, votes) {
                    const int k = keys.at[c] - base, label = label_of(objects, apart, k);
                    const double weight = E(votes);
                    double held = 0.0;
                    for (int d = 0; d < KINDS; d++) {
                        const double own = per_habit[d] * HABIT(g, label, d) * even;
                        if (n_cells > 1) right_here[d] = get(apart, k, d) * weight / says(given, pair, weight, d);
                        held += RIGHT(g, d) * right_here[d] + own * weight;
                        if (LABELS > 1)
                            add(parts, n_sums, sums, g * row + 3 * KINDS + d * LABELS + label,
                                fixed(own * (weight - 1.0), UNITS));
                    }
                    evidence += AS_FALSE(votes);
                    gain_true += held * SLOPE_TRUE(votes);
                    gain_false += (1.0 - held) * SLOPE_FALSE(votes);
                }
            }
            add_term(words + 0, gain_true);
            add_term(words + 2, slope_all);
            add_term(words + 4, gain_false);
            add_term(words + 6, (apart.domain - 1) * slope_all);
            add_term(words + 8, evidence);
        }
        // Threads of a warp that are not told to wait for each other drift apart.
        __syncwarp();
        const int lane = threadIdx.x % 32, n_words = TERMS + (LABELS > FEW ? 0 : LABELS * KINDS);
        long long mine = 0;
#pragma unroll
        for (int i = 0; i < n_words; i++) {
            const long long sum = sum_of_lanes(words[i]);
            if (lane == i) mine = sum;
        }
        if (lane < n_words)
            add(parts, n_sums, sums, lane < TERMS ? n_sums - TERMS + lane : n_groups * row + lane - TERMS, mine);
    }
#if IN_SHARED
    __syncthreads();
    for (int i = threadIdx.x; i < n_sums; i += blockDim.x) {
        Word sum = parts[i] | (Word)parts[n_sums + i] << 32;
        if (sum) atomicAdd(sums + i, sum);
    }
#endif
}

#else
// ---- Relocation: one block, one source after another; its claims and the groups that it may join side by side. ----

// What is kept of the source that looks for a place.
struct Lone {
    double *here, *elsewhere;
    int *domain, *label;
};

// How probable claim j is from a source like this, were nobody else of its group on the object.
__device__ double claim_alone(int j, const Lone &lone, const double *right, const double *habit, const double *habits,
                              const Given &given, double *mass) {
    double each = 0.0, eta = given.eta, theta = given.theta;
    for (int d = 0; d < KINDS; d++) {
        double here = lone.here[KINDS * j + d], elsewhere = lone.elsewhere[KINDS * j + d];
        double own = LABELS > 1 ? habit[lone.label[j] * KINDS + d] : habit[d] / lone.domain[j];
        each += right[d] * (here * eta + elsewhere * theta);
        each += (here + elsewhere) * (own * (eta - theta) + habits[d] * theta);
        if (mass) mass[d] = here + elsewhere;
    }
    return each;
}

__device__ double sum_of_warp(double x) {
    for (int far = 16; far > 0; far /= 2) x += __shfl_down_sync(0xffffffffu, x, far);
    return x;
}

// The sum over the block, known to all its threads.
__device__ double sum_of_block(double x, double *room) {
    x = sum_of_warp(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = x;
    __syncthreads();
    double total = 0.0;
    for (int w = 0; w < THREADS / 32; w++) total += room[w];
    return total;
}

// How much more probable a claim of y is from a pair's group, given its claims here, than were it silent here.
__device__ double joined(int y, int label, const Given &given, const Apart &apart, const Keys &keys, const Pair &pair, const double *here,
                         const double *elsewhere) {
    const int g = pair.group, base = g * PLACES;
    const double eta = given.eta, theta = given.theta, total = eta + (apart.domain - 1.0) * theta;
    int at_y = 0;
    CELLS(c, votes) if (keys.at[c] == base + y) at_y = votes;
    const double weight = E(at_y), more = E(at_y + 1);
    double after = 0.0, before = 0.0;
    for (int d = 0; d < KINDS; d++) {
        const double right = RIGHT(g, d), habit = LABELS > 1 ? HABIT(g, label, d) : HABIT(g, 0, d) / apart.domain;
        const double careless = pair.careless[d] + habit * (more - weight);
        double left = elsewhere[d];
        CELLS(c, votes) if (keys.at[c] != base + y) {
            const double z = get(apart, keys.at[c] - base, d);
            left -= z;
            after += z * (right * E(votes) + careless) / says(given, pair, E(votes), d);
        }
        after += here[d] * (right * more + careless) / says(given, pair, weight, d);
        after += fmax(left, 0.0) * (right + careless) / pair.says_rest[d];
        before += right * (here[d] * eta + elsewhere[d] * theta);
        before += (here[d] + elsewhere[d]) * (habit * (eta - theta) + HABITS(g, d) * theta);
    }
    return after * (theta + at_y) * total / ((total + pair.past - pair.first) * before);
}

__device__ double digamma(double x) {
    double shift = 0.0;
    for (; x < 10.0; x += 1.0) shift -= 1.0 / x;
    double i = 1.0 / (x * x);
    double series = i * (1.0 / 12 - i * (1.0 / 120 - i * (1.0 / 252 - i * (1.0 / 240 - i * (1.0 / 132 - i * (691.0 / 32760))))));
    return shift + log(x) - 0.5 / x - series;
}

// E ln of a Dirichlet, and its divergence from a prior.
__device__ double expected_log(const double *prior, const double *parameters, int n, double *log_mean) {
    double total = 0.0, prior_total = 0.0, divergence = 0.0;
    for (int i = 0; i < n; i++) total += parameters[i], prior_total += prior[i];
    double psi = digamma(total);
    for (int i = 0; i < n; i++) {
        log_mean[i] = digamma(parameters[i]) - psi;
        divergence += lgamma(prior[i]) - lgamma(parameters[i]) + (parameters[i] - prior[i]) * log_mean[i];
    }
    return divergence + lgamma(total) - lgamma(prior_total);
}

extern "C" __global__ void __launch_bounds__(THREADS) relocate(
    const int *source, const VALUE *value, const INDEX *first_claim, const INDEX *first_candidate, const double *log_truth,
    const int *label, const double *log_unclaimed, int *group, double *voice, const double *counts, const int *first_total,
    const double *totals, const double *share, const double *scalars, const int *order, int n_order,
    const INDEX *first_of_source, const INDEX *object_of, int *size_of, double *reliability, double *habit, const double *b,
    const double *h, double *here, double *elsewhere, int *domain_of_claim, int *label_of_claim, int *seen, Word *nats, int *near,
    int *chosen, double *worth, double *result
) {
    const Objects objects = {source, value, first_claim, first_candidate, log_truth, label, log_unclaimed};
    const Given given = {group, voice, nullptr, counts, first_total, totals, share, scalars[0], scalars[1], 0.0};
    const Lone lone = {here, elsewhere, domain_of_claim, label_of_claim};
    const double eta = given.eta, theta = given.theta, log_kappa = scalars[2], per_unit = 1099511627776.0;
    __shared__ double room[THREADS / 32], beta[KINDS][2], alpha[KINDS][LABELS], log_u[KINDS][2], log_x[KINDS][LABELS];
    __shared__ double right[KINDS], own_habit[LABELS * KINDS], habits[KINDS], divergence[KINDS];
    __shared__ double said[KINDS][LABELS + 1];
    __shared__ Word said_of_label[KINDS * LABELS];
    __shared__ int n_near, n_chosen;
    const int t = threadIdx.x;
    int empty = 0, moved = 0;
    double gain = 0.0;
    Apart apart;
    Keys keys;
    Pair pair;
    int key[DEPTH];
    for (int turn = 0; turn < n_order; turn++) {
        const int n = order[turn], old = group[n];
        const INDEX first = first_of_source[n];
        const int n_claims = (int)(first_of_source[n + 1] - first);
        const bool alone = size_of[old] == 1;
        if (t == 0) n_near = 0, n_chosen = 0;
        __syncthreads();
        for (int j = t; j < n_claims; j += THREADS) {
            INDEX m = object_of[first + j], i = first_claim[m];
            while (source[i] != n) i++;
            int y = value[i];
            sort_claims(m, i, objects, given, apart, key);
            CLAIMS(c) keys.at[c] = key[c];
            before(m, objects, given, apart);
            hear_pairs(objects, given, apart, keys, pair);
            normalise(apart);
            double at_y[KINDS], off_y[KINDS];
            for (int d = 0; d < KINDS; d++) {
                at_y[d] = get(apart, y, d), off_y[d] = apart.q_unclaimed[d];
                ALL(k) if (k != y) off_y[d] += apart.q[k][d];
                here[KINDS * j + d] = at_y[d], elsewhere[KINDS * j + d] = off_y[d];
            }
            domain_of_claim[j] = apart.domain;
            label_of_claim[j] = label_of(objects, apart, y);
            for (int p = 0; p < apart.n;) {
                p = speak(p, objects, given, apart, keys, pair);
                double more = log(joined(y, label_of_claim[j], given, apart, keys, pair, at_y, off_y));
                atomicAdd(nats + pair.group, (Word)fixed(more, per_unit));
                if (!atomicExch(seen + pair.group, 1)) near[atomicAdd(&n_near, 1)] = pair.group;
            }
        }

        // Alone: its own reliability and habit, from where they are or from the prior, found in a few rounds.
        if (t < KINDS) {
            for (int r = 0; r < 2; r++) beta[t][r] = alone ? reliability[(old * KINDS + t) * 2 + r] : b[2 * t + r];
            for (int k = 0; k < LABELS; k++)
                alpha[t][k] = alone ? habit[((long long)old * KINDS + t) * LABELS + k] : h[LABELS * t + k];
        }
        double now = -INFINITE, best = 0.0, evidence = 0.0, reliable[KINDS];
        for (int r = 0; r <= 3; r++) {
            __syncthreads();
            if (t < KINDS) {
                divergence[t] = expected_log(b + 2 * t, beta[t], 2, log_u[t]) +
                                expected_log(h + LABELS * t, alpha[t], LABELS, log_x[t]);
                right[t] = fmax(exp(log_u[t][1]), LEAST);
                habits[t] = 0.0;
                for (int k = 0; k < LABELS; k++) {
                    own_habit[k * KINDS + t] = fmax(exp(log_u[t][0] + log_x[t][k]), LEAST);
                    habits[t] += own_habit[k * KINDS + t];
                    said_of_label[t * LABELS + k] = 0;
                }
            }
            __syncthreads();
            double sum = 0.0, sum_right[KINDS] = {}, sum_said[KINDS] = {};
            for (int j = t; j < n_claims; j += THREADS) {
                double mass[KINDS], each = claim_alone(j, lone, right, own_habit, habits, given, mass);
                sum += log(each / (eta + (domain_of_claim[j] - 1.0) * theta));
                for (int d = 0; d < KINDS; d++) {
                    sum_right[d] += right[d] * (here[KINDS * j + d] * eta + elsewhere[KINDS * j + d] * theta) / each;
                    sum_said[d] += mass[d] * theta / each;
                    double own = mass[d] * (eta - theta) / each / (LABELS > 1 ? 1 : domain_of_claim[j]);
                    atomicAdd(said_of_label + d * LABELS + label_of_claim[j], (Word)fixed(own, per_unit));
                }
            }
            evidence = sum_of_block(sum, room);
            for (int d = 0; d < KINDS; d++) {
                reliable[d] = sum_of_block(sum_right[d], room);
                double all = sum_of_block(sum_said[d], room);
                if (t == 0) {
                    said[d][LABELS] = all;
                    for (int k = 0; k < LABELS; k++) said[d][k] = (double)(long long)said_of_label[d * LABELS + k] / per_unit;
                }
            }
            best = log_kappa - divergence[0] - divergence[1] + evidence;
            if (alone && r == 0) now = best;
            __syncthreads();
            if (r < 3 && t < KINDS) {
                double wrong = 0.0;
                for (int k = 0; k < LABELS; k++) {
                    double mass = own_habit[k * KINDS + t] * (said[t][k] + said[t][LABELS]);
                    wrong += mass;
                    alpha[t][k] = h[LABELS * t + k] + (LABELS > 1 ? mass : 0.0);
                }
                beta[t][0] = b[2 * t] + wrong;
                beta[t][1] = b[2 * t + 1] + reliable[t];
            }
        }
        __syncthreads();
        int best_group = -1;

        // Where it is now comes first: the higher the best so far, the more are ruled out, by a tangent of the evidence.
        if (!alone) {
            double sum = 0.0;
            for (int j = t; j < n_claims; j += THREADS) {
                const double *v = voice + (long long)old * VOICE;
                double each = claim_alone(j, lone, v, v + 3 * KINDS, v + 2 * KINDS, given, nullptr);
                sum += log(each / (eta + (domain_of_claim[j] - 1.0) * theta));
            }
            sum = sum_of_block(sum, room);
            now = sum + (double)(long long)nats[old] / per_unit + log((double)(size_of[old] - 1));
            if (now > best) best = now, best_group = old;
        }
        for (int i = t; i < n_near; i += THREADS) {
            int g = near[i];
            if (g == old) continue;
            double most = (double)(long long)nats[g] / per_unit + log((double)size_of[g]) + evidence;
            for (int d = 0; d < KINDS; d++) {
                most += reliable[d] * (RIGHT(g, d) / right[d] - 1.0);
                for (int k = 0; k < LABELS; k++)
                    most += (said[d][k] + said[d][LABELS]) * (HABIT(g, k, d) - own_habit[k * KINDS + d]);
            }
            if (most >= best) chosen[atomicAdd(&n_chosen, 1)] = g;
        }
        __syncthreads();
        for (int i = t / 32; i < n_chosen; i += THREADS / 32) {
            int g = chosen[i];
            const double *v = voice + (long long)g * VOICE;
            double sum = 0.0;
            for (int j = t % 32; j < n_claims; j += 32) {
                double each = claim_alone(j, lone, v, v + 3 * KINDS, v + 2 * KINDS, given, nullptr);
                sum += log(each / (eta + (domain_of_claim[j] - 1.0) * theta));
            }
            sum = sum_of_warp(sum);
            if (t % 32 == 0) worth[i] = sum + (double)(long long)nats[g] / per_unit + log((double)size_of[g]);
        }
        __syncthreads();
        if (t == 0) {
            for (int i = 0; i < n_chosen; i++)
                if (worth[i] > best || (worth[i] == best && chosen[i] < best_group)) best = worth[i], best_group = chosen[i];
            if (best > now + (alone && best_group < 0 ? OF_ITS_OWN : 1e-9)) {
                gain += best - now;
                if (alone && best_group >= 0) {
                    empty = min(empty, old);
                    for (int i = 0; i < 2 * KINDS; i++) reliability[old * 2 * KINDS + i] = b[i];
                    for (int i = 0; i < KINDS * LABELS; i++) habit[(long long)old * KINDS * LABELS + i] = h[i];
                }
                if (best_group < 0) {
                    if (!alone)
                        while (size_of[empty] > 0) empty++;
                    best_group = alone ? old : empty;
                    for (int d = 0; d < KINDS; d++) {
                        voice[(long long)best_group * VOICE + d] = right[d];
                        voice[(long long)best_group * VOICE + 2 * KINDS + d] = habits[d];
                        for (int r = 0; r < 2; r++) reliability[(best_group * KINDS + d) * 2 + r] = beta[d][r];
                        for (int k = 0; k < LABELS; k++) {
                            voice[(long long)best_group * VOICE + (3 + k) * KINDS + d] = own_habit[k * KINDS + d];
                            habit[((long long)best_group * KINDS + d) * LABELS + k] = alpha[d][k];
                        }
                    }
                }
                if (best_group != old) {
                    moved++;
                    size_of[old]--;
                    size_of[best_group]++;
                    group[n] = best_group;
                }
            }
        }
        for (int i = t; i < n_near; i += THREADS) nats[near[i]] = 0, seen[near[i]] = 0;
        __syncthreads();
    }
    if (t == 0) result[0] = moved, result[1] = gain;
}
#endif
