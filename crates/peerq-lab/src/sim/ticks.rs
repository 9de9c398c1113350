//! The next tick of each connection: a heap in which a tick can be moved.
//!
//! The one idea: a connection's next boundary moves whenever rates are shared anew, far more often than one is reached; a plain queue would fill with ticks
//! that were planned otherwise since.

use super::queue::{Micros, NEVER};

/// One tick per connection, by time, then by order of planning.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ticks {
    /// When each connection ticks, and when that was planned.
    keys: Vec<(Micros, u64)>,
    /// Connections with a tick, as a binary heap.
    heap: Vec<u32>,
    /// Where in it a connection is; [`ABSENT`] if nowhere.
    places: Vec<u32>,
}

const ABSENT: u32 = u32::MAX;

impl Ticks {
    /// No ticks yet of so many connections.
    pub(crate) fn new(connections: usize) -> Self {
        Ticks { keys: vec![(NEVER, 0); connections], heap: Vec::new(), places: vec![ABSENT; connections] }
    }

    /// When a connection ticks.
    pub(crate) fn at(&self, connection: u32) -> Micros {
        self.keys[connection as usize].0
    }

    /// The next tick's time and order.
    pub(crate) fn next(&self) -> Option<(Micros, u64)> {
        self.heap.first().map(|connection| self.keys[*connection as usize])
    }

    /// Takes the next tick.
    pub(crate) fn pop(&mut self) -> Option<u32> {
        let connection = *self.heap.first()?;
        self.plan(connection, NEVER, 0);
        Some(connection)
    }

    /// Plans, or moves, a connection's tick; [`NEVER`] removes it.
    pub(crate) fn plan(&mut self, connection: u32, at: Micros, order: u64) {
        self.keys[connection as usize] = (at, order);
        let place = self.places[connection as usize];
        if at >= NEVER {
            if place != ABSENT {
                self.remove(place as usize);
            }
            return;
        }
        let place = if place == ABSENT {
            self.heap.push(connection);
            self.heap.len() - 1
        } else {
            place as usize
        };
        self.settle(connection, place);
    }

    fn remove(&mut self, place: usize) {
        let removed = self.heap.swap_remove(place);
        self.places[removed as usize] = ABSENT;
        if let Some(moved) = self.heap.get(place).copied() {
            self.settle(moved, place);
        }
    }

    /// Brings a connection whose key changed from a place to where it belongs.
    fn settle(&mut self, connection: u32, mut place: usize) {
        let key = self.keys[connection as usize];
        while place > 0 {
            let parent = self.heap[(place - 1) / 2];
            if self.keys[parent as usize] <= key {
                break;
            }
            self.put(parent, place);
            place = (place - 1) / 2;
        }
        loop {
            let left = 2 * place + 1;
            let Some(mut child) = self.heap.get(left).copied() else { break };
            let mut child_place = left;
            if let Some(right) = self.heap.get(left + 1).copied().filter(|right| self.key(*right) < self.key(child)) {
                (child, child_place) = (right, left + 1);
            }
            if key <= self.key(child) {
                break;
            }
            self.put(child, place);
            place = child_place;
        }
        self.put(connection, place);
    }

    fn key(&self, connection: u32) -> (Micros, u64) {
        self.keys[connection as usize]
    }

    fn put(&mut self, connection: u32, place: usize) {
        self.heap[place] = connection;
        self.places[connection as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::Stream;

    #[test]
    fn ticks_come_in_order_however_often_they_were_moved() {
        let mut stream = Stream::new(1, "test", "ticks", 0);
        let mut ticks = Ticks::new(20);
        let mut model = [None; 20];
        for order in 1..5_000 {
            let connection = (stream.unit() * 20.0) as usize;
            let at = if stream.happens(0.2) { NEVER } else { (stream.unit() * 50.0) as u64 };
            ticks.plan(connection as u32, at, order);
            model[connection] = (at < NEVER).then_some((at, order));
            if stream.happens(0.3) {
                let least = model.iter().flatten().min().copied();
                assert_eq!(ticks.next(), least);
                let popped = ticks.pop();
                assert_eq!(
                    popped,
                    least.and_then(|least| model.iter().position(|key| *key == Some(least))).map(|at| at as u32)
                );
                if let Some(popped) = popped {
                    model[popped as usize] = None;
                }
            }
        }
    }
}
