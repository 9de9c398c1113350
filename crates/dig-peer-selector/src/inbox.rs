//! Outcomes that were told while somebody else had the state: nobody who ends a transfer waits for a selection.
//!
//! The one idea: whoever has the state next takes in what lies here before anything else. So a call sees every outcome that was told before it began, one thread's
//! outcomes stay in their order, and a thread on its own, which never finds the state taken, never leaves anything here.
//!
//! At most [`MAX_WAITING`] lie here; whoever comes when it is full waits for the state instead. The state is never locked while this is.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use peer_quality::units::Time;

use crate::outcome::TransferOutcome;

/// Outcomes that may wait, 200 KiB of them: more than thousands of peers end within the longest selection. Higher costs memory, lower makes threads wait for each other.
pub(crate) const MAX_WAITING: usize = 1024;

/// An outcome, and when it was told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) outcome: TransferOutcome,
    pub(crate) at: Time,
}

/// See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    /// How many wait: spares those who have the state a second lock.
    count: AtomicUsize,
    waiting: Mutex<Vec<Told>>,
}

impl Inbox {
    /// Leaves an outcome for whoever has the state next; false, and nothing is left, if too many wait.
    pub(crate) fn leave(&self, told: Told) -> bool {
        let mut waiting = self.lock();
        let has_room = waiting.len() < MAX_WAITING;
        if has_room {
            waiting.push(told);
            self.count.store(waiting.len(), Ordering::Release);
        }
        has_room
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Swaps what waits, in the order in which it was left, for an empty list.
    pub(crate) fn take(&self, emptied: Vec<Told>) -> Vec<Told> {
        let mut waiting = self.lock();
        self.count.store(0, Ordering::Release);
        std::mem::replace(&mut waiting, emptied)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Told>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
