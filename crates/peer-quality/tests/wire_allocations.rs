//! The wire allocates nothing per SDU once its bounded tables have grown to the traffic.
#![allow(missing_docs)]

mod wire_peer;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::VecDeque;

use peer_quality::measure::wire::{Connection, Reply, Stamp};
use wire_peer::{SDU, connection, us};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counting for each thread.
struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; counting touches no allocated memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's contract is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is the system's.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// An hour of traffic in steps of `step_us`, round trips of 40 ms with jitter, read and polled as a host does.
fn run(c: &mut Connection, sent: &mut VecDeque<u16>, from_us: u64, steps: u64, step_us: u64) {
    let in_flight = (40_000 / step_us) as usize;
    for nth in 0..steps {
        let now = us(from_us + nth * step_us);
        sent.push_back(c.on_egress(Reply::Prompt, now).send);
        let jitter = (nth * 7919 % 5) as usize;
        let echo = if sent.len() > in_flight + jitter { sent.pop_front().unwrap_or(0) } else { 0 };
        c.on_ingress(Stamp { send: 1, echo }, SDU, now);
        c.rtt(now);
        c.on_timeout(now);
        c.poll_timeout();
        while c.poll_event().is_some() {}
    }
}

#[test]
fn nothing_is_allocated_per_sdu() {
    for step_us in [200, 1_000, 5_000] {
        let mut c = connection();
        let mut sent = VecDeque::with_capacity(1024);
        c.on_transfer_open(us(0));
        // Seventy seconds: the window of the round trips is full.
        let settling = 70_000_000 / step_us;
        run(&mut c, &mut sent, 0, settling, step_us);
        let before = ALLOCATIONS.with(Cell::get);
        run(&mut c, &mut sent, settling * step_us, 300_000, step_us);
        assert_eq!(ALLOCATIONS.with(Cell::get) - before, 0, "a step of {step_us} µs");
        assert!(c.rtt(us(0)).is_some() && c.live_burst().is_some());
    }
}
