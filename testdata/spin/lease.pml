/*
 * A lease with fencing tokens, for Spin: the reference model that package model
 * explores in Go (model/reference_test.go), written a second time so that the
 * two can be held against each other. They must print the same number of states;
 * Spin counts one transition more, the one into the initial state.
 *
 *	spin -a -DN=2 -DT=0 -DK=2 -DD=1 -DPAUSE=1 lease.pml
 *	gcc -O2 -DSAFETY -DNOREDUCE -o pan pan.c
 *	./pan -m1000000        # 1185296 states, 11097329 transitions, 0 errors
 *
 * N	clients, 2 or 3
 * T	the largest instant; 0: time has no bound, and no variable
 * K	the store hands out the tokens 1..K
 * D	how many ticks each client's clock may miss
 * PAUSE	1: clients may stand still
 *
 * Every action is one d_step, so that a state between two halves of an action
 * does not exist. Fields that mean nothing are zero, so that they tell no two
 * states apart.
 */

#ifndef N
#define N 2
#endif
#ifndef T
#define T 0
#endif
#ifndef K
#define K 2
#endif
#ifndef D
#define D 1
#endif
#ifndef PAUSE
#define PAUSE 1
#endif

#define TTL  4	/* ticks of the store's clock */
#define SAFE 3	/* ticks of its own clock for which a client uses the lease */

/* What is under way between a client and the store; macros, as an mtype would
 * take a byte. */
#define NONE 0
#define ACQ  1
#define REN  2
#define REL  3
#define OK   4
#define FAIL 5

typedef Client {
	bit paused;
	unsigned lag  : 2;
	bit bel;		/* believes that it holds the lease */
	unsigned el   : 2;	/* age of the lease as the client counts it */
	unsigned tok  : 2;
	unsigned rpc  : 3;
	unsigned rage : 2;	/* age of the call */
	unsigned rtok : 2;
	unsigned wr   : 2;	/* token of the write under way, 0 for none */
};

Client c[N];
#if T > 0
byte now;
#endif
unsigned holder : 2;	/* 1 + client, 0 for nobody */
unsigned rem    : 3;
unsigned token  : 2;
unsigned st     : 2;	/* the highest token that storage has seen */

#define FORGET_LEASE(i) c[i].bel = 0; c[i].el = 0; c[i].tok = 0
#define FORGET_CALL(i)  c[i].rpc = NONE; c[i].rage = 0; c[i].rtok = 0

#define LEADS(i) (c[i].bel && c[i].el < SAFE)
#define OWNS(i)  (holder == i + 1 && c[i].rtok == token)
#define SOUND(i) ((!LEADS(i) || (holder == i + 1 && c[i].tok == token)) && \
	c[i].tok <= token && c[i].rtok <= token && c[i].wr <= token)
#if N > 2
#define CHECK assert(st <= token && SOUND(0) && SOUND(1) && SOUND(2))
#else
#define CHECK assert(st <= token && SOUND(0) && SOUND(1))
#endif

#if T > 0
#define TIME_LEFT now < T
#define NOW       now++
#else
#define TIME_LEFT true
#define NOW       skip
#endif

#define STORE_TICK \
	NOW; \
	if \
	:: rem > 0 -> rem--; if :: rem == 0 -> holder = 0 :: else fi \
	:: else \
	fi

#define CLIENT_TICK(i) \
	if :: c[i].bel && c[i].el < SAFE -> c[i].el++ :: else fi; \
	if :: c[i].rpc != NONE && c[i].rage < SAFE -> c[i].rage++ :: else fi

/* The clients other than i, of which each tick of i's own is missing. */
#if N > 2
#define OTHERS_TICK(i) CLIENT_TICK((i + 1) % 3); CLIENT_TICK((i + 2) % 3)
#define ALL_TICK CLIENT_TICK(0); CLIENT_TICK(1); CLIENT_TICK(2)
#else
#define OTHERS_TICK(i) CLIENT_TICK(1 - i)
#define ALL_TICK CLIENT_TICK(0); CLIENT_TICK(1)
#endif

#if PAUSE
#define PAUSING(i) :: d_step { c[i].paused = !c[i].paused; CHECK }
#else
#define PAUSING(i)
#endif

#define CLIENT(i) \
	PAUSING(i) \
	/* a tick that client i's clock misses */ \
	:: d_step { c[i].lag < D && TIME_LEFT -> STORE_TICK; OTHERS_TICK(i); c[i].lag++; CHECK } \
	/* the client sends */ \
	:: d_step { !c[i].paused && c[i].rpc == NONE && !c[i].bel -> c[i].rpc = ACQ; CHECK } \
	:: d_step { !c[i].paused && c[i].rpc == NONE && LEADS(i) -> c[i].rpc = REN; c[i].rtok = c[i].tok; CHECK } \
	:: d_step { !c[i].paused && c[i].rpc == NONE && c[i].bel -> c[i].rpc = REL; c[i].rtok = c[i].tok; FORGET_LEASE(i); CHECK } \
	:: d_step { !c[i].paused && LEADS(i) && c[i].wr == 0 -> c[i].wr = c[i].tok; CHECK } \
	/* the client receives, or its window ends */ \
	:: d_step { !c[i].paused && c[i].rpc == OK -> \
		if \
		:: c[i].rage < SAFE -> c[i].bel = 1; c[i].el = c[i].rage; c[i].tok = c[i].rtok \
		:: else -> FORGET_LEASE(i) \
		fi; \
		FORGET_CALL(i); CHECK } \
	:: d_step { !c[i].paused && c[i].rpc == FAIL -> FORGET_LEASE(i); FORGET_CALL(i); CHECK } \
	:: d_step { !c[i].paused && c[i].bel && c[i].el == SAFE -> FORGET_LEASE(i); CHECK } \
	/* the store handles a request */ \
	:: d_step { c[i].rpc == ACQ -> \
		if \
		:: holder == 0 && token < K -> \
			token++; holder = i + 1; rem = TTL; c[i].rpc = OK; \
			assert(token > c[i].rtok); c[i].rtok = token \
		:: else -> c[i].rpc = FAIL \
		fi; \
		CHECK } \
	:: d_step { c[i].rpc == REN -> \
		if \
		:: OWNS(i) -> rem = TTL; c[i].rpc = OK \
		:: else -> c[i].rpc = FAIL; c[i].rtok = 0 \
		fi; \
		CHECK } \
	:: d_step { c[i].rpc == REL -> \
		if :: OWNS(i) -> holder = 0; rem = 0 :: else fi; \
		FORGET_CALL(i); CHECK } \
	/* the network loses a request or an answer */ \
	:: d_step { c[i].rpc != NONE -> FORGET_CALL(i); CHECK } \
	/* storage handles a write, or the network loses it */ \
	:: d_step { c[i].wr != 0 -> \
		if \
		:: c[i].wr >= st -> st = c[i].wr \
		:: else \
		fi; \
		c[i].wr = 0; CHECK } \
	:: d_step { c[i].wr != 0 -> c[i].wr = 0; CHECK }

active proctype world() {
end:	do
	:: d_step { TIME_LEFT -> STORE_TICK; ALL_TICK; CHECK }
	CLIENT(0)
	CLIENT(1)
#if N > 2
	CLIENT(2)
#endif
	od
}
