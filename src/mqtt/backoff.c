/* SPDX-License-Identifier: MIT */
#include "mqtt/backoff.h"

#include "heartwheel/time.h"

#define TAKEOVERS 3
/* if the connection was up for this long, no other client has caused its end */
#define TAKEOVER_NS (10 * HW_NS_PER_S)
#define STEADY_NS   HW_NS_PER_S /* after this long, a link may be tried again at once */
#define AT_ONCE_MS  1           /* shorter than any restart of a broker, so the attempt fails if the broker restarts */
/* most attempts at once in a row; after these, the monitor assumes another client with the same id */
#define AT_ONCE      TAKEOVERS
#define QUICK_MS     50
#define SOON_MS      500
#define AWAY_MS      1000
#define UNREACHED_MS 2500
#define REFUSED_MAX  60000

bool hw_backoff_taken_over(struct hw_backoff *b, int64_t up_ns)
{
	if (up_ns >= TAKEOVER_NS)
		b->takeovers = 0;
	else if (b->at_once)
		b->takeovers++;
	else /* After a longer delay, the broker may have restarted, which looks like a second client. But if a second
	        client was assumed before, one such close is enough. */
		b->takeovers = b->refusals > 0 ? TAKEOVERS - 1 : 1;
	return b->takeovers >= TAKEOVERS;
}

static int64_t between(int64_t least, int64_t most, uint32_t random)
{
	return least + random % (most - least + 1);
}

/* Returns the delay after a refusal: 1 s, 2 s, 4 s and so on up to a minute. Each delay is changed at random by up
 * to a quarter. */
static int64_t refused_ms(unsigned times, uint32_t random)
{
	int64_t ms = times > 6 ? REFUSED_MAX : INT64_C(1000) << (times - 1);
	return between(ms * 3 / 4, ms * 5 / 4, random);
}

static int64_t away_ms(struct hw_backoff *b, enum hw_fault fault, uint32_t random)
{
	int64_t slow_ms = fault == HW_FAULT_UNREACHED || fault == HW_FAULT_UNANSWERED ? UNREACHED_MS : AWAY_MS;
	switch (b->tries) {
	case 0:
		return AT_ONCE_MS;
	case 1:
		return between(QUICK_MS, 5 * QUICK_MS, random);
	case 2:
		return between(SOON_MS, 2 * SOON_MS, random);
	default:
		return between(slow_ms, 2 * slow_ms, random);
	}
}

int64_t hw_backoff_ms(struct hw_backoff *b, enum hw_fault fault, int64_t up_ns, uint32_t random)
{
	b->at_once = false;
	if (fault == HW_FAULT_REFUSED || fault == HW_FAULT_TAKEN) {
		b->tries = 0;
		return refused_ms(++b->refusals, random);
	}
	if (up_ns == 0 || up_ns >= TAKEOVER_NS)
		b->refusals = 0;
	b->tries = up_ns >= STEADY_NS ? 0 : b->tries + 1;
	b->at_once = up_ns > 0 && b->tries <= AT_ONCE;
	return b->at_once ? AT_ONCE_MS : away_ms(b, fault, random);
}
