//! The burst window as a state machine: when data counts, when it stops counting, and why (MEAS-5).
//!
//! The one idea: coverage is paid for twice, with prompt data and with fresh echoes. A window opens with the first read of a warm connection and stays open
//! while reads come within the gate; on the other channel, while a cookie is outstanding, an echo has to match within the gate as well. Whoever
//! goes silent on either ends it. After missing echoes no window opens until one matches, so that nothing is banked over a rotting round trip.
//!
//! Deadlines are inputs here and are worked off before whatever comes after them, so a host that polls and one that does not get the same bursts. The whole table
//! is printed by [`Table`] and kept in `window.txt` beside this file.

use core::fmt;

/// Where a connection stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum State {
    /// Congestion window unknown; the next read starts a ramp.
    #[default]
    Cold,
    /// Window-limited rounds; data counts for the ramp only.
    Ramping,
    /// Warm, no window; the next read opens one.
    Idle,
    /// A window is open; data counts.
    Open,
    /// Echoes are missing; data does not count until one matches.
    Starved,
    /// We do not read, or everybody is silent; nothing counts.
    Paused,
}

/// What may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// A read with payload.
    Data,
    /// The ramp found that rounds no longer grow.
    RampOver,
    /// An echo matched.
    Matched,
    /// No data for longer than the gate.
    DataLate,
    /// A cookie is outstanding, and none matched for longer than the gate.
    EchoLate,
    /// The last outstanding cookie was forgotten.
    Drained,
    /// No data for longer than a congestion window is kept.
    IdleOver,
    /// The last open transfer ended.
    Completed,
    /// We stopped reading, were not running, or a common mode began.
    Pause,
    /// That is over.
    Resume,
}

/// What is done on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Nothing.
    None,
    /// Begin a round of the ramp with this read.
    BeginRound,
    /// Count this read in the ramp.
    Ramp,
    /// Forget the ramp: the next one starts afresh.
    ResetRamp,
    /// Open a window with this read, whose own gap does not count.
    Begin,
    /// Count this read and the gap before it.
    Extend,
    /// Close the window.
    End,
    /// Close the window; in an open transfer a stall of the data channel has begun.
    EndStalled,
    /// Close the window; in an open transfer a stall of the echo channel has begun.
    EndStarved,
    /// Forget the ramp; in an open transfer a stall of the data channel has begun, for throughput that rises is not silent this long.
    StallRamp,
}

impl State {
    /// All states, in the order of the table.
    pub const ALL: [State; 6] = [State::Cold, State::Ramping, State::Idle, State::Open, State::Starved, State::Paused];

    /// The next state and what is done on the way there.
    pub const fn on(self, input: Input) -> (State, Action) {
        use Action::*;
        use Input::*;
        use State::*;
        match (self, input) {
            (Paused, Resume) => (Cold, None),
            (Paused, _) => (Paused, None),
            (Open, Pause) => (Paused, End),
            (_, Pause) => (Paused, None),

            (Cold, Data) => (Ramping, BeginRound),
            (Ramping, Data) => (Ramping, Ramp),
            (Idle, Data) => (Open, Begin),
            (Open, Data) => (Open, Extend),
            (Starved, Data) => (Starved, None),

            (Ramping, RampOver) => (Open, Begin),
            (Open, DataLate) => (Idle, EndStalled),
            (Open, EchoLate) => (Starved, EndStarved),
            (Starved, Matched | Drained) => (Idle, None),

            (Ramping, IdleOver) => (Cold, StallRamp),
            (Open, IdleOver) => (Cold, EndStalled),
            (Cold | Idle | Starved, IdleOver) => (Cold, ResetRamp),

            (Ramping, Completed) => (Cold, None),
            (Open, Completed) => (Idle, End),

            // A silent round, an echo that nothing waits for, an end of nothing.
            (state, RampOver | Matched | DataLate | EchoLate | Drained | Completed | Resume) => (state, None),
        }
    }
}

/// [`State::on`] worked out for every pair, since it is consulted for each SDU.
const TRANSITIONS: [[(State, Action); Input::ALL.len()]; State::ALL.len()] = {
    let mut table = [[(State::Cold, Action::None); Input::ALL.len()]; State::ALL.len()];
    let mut pair = 0;
    while pair < State::ALL.len() * Input::ALL.len() {
        let (state, input) = (State::ALL[pair / Input::ALL.len()], Input::ALL[pair % Input::ALL.len()]);
        table[state as usize][input as usize] = state.on(input);
        pair += 1;
    }
    table
};

impl State {
    /// [`on`](Self::on) by table.
    pub(super) fn look_up(self, input: Input) -> (State, Action) {
        TRANSITIONS[self as usize][input as usize]
    }
}

impl Input {
    /// All inputs, in the order of the table.
    pub const ALL: [Input; 10] = [
        Input::Data,
        Input::RampOver,
        Input::Matched,
        Input::DataLate,
        Input::EchoLate,
        Input::Drained,
        Input::IdleOver,
        Input::Completed,
        Input::Pause,
        Input::Resume,
    ];
}

/// Prints the transition table, one line for each pair that changes or does something.
#[derive(Clone, Copy, Debug)]
pub struct Table;

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<8} {:<10} {:<8} action", "state", "input", "next")?;
        for state in State::ALL {
            for input in Input::ALL {
                let (next, action) = state.on(input);
                if next == state && action == Action::None {
                    continue;
                }
                let [from, by, to] = [name_of(&state), name_of(&input), name_of(&next)];
                writeln!(f, "{from:<8} {by:<10} {to:<8} {action:?}")?;
            }
        }
        Ok(())
    }
}

/// Debug names do not honour a width, strings do.
fn name_of(value: &dyn fmt::Debug) -> alloc::string::String {
    alloc::format!("{value:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn the_table_is_the_one_on_paper() {
        // After a change that is meant, copy the left side into the file.
        assert_eq!(Table.to_string(), include_str!("window.txt"), "\n{Table}");
    }

    #[test]
    fn the_table_in_memory_is_the_function() {
        for state in State::ALL {
            for input in Input::ALL {
                assert_eq!(state.look_up(input), state.on(input));
            }
        }
    }

    #[test]
    fn nothing_counts_without_a_match_once_echoes_are_late() {
        for input in Input::ALL {
            let (next, action) = State::Starved.on(input);
            assert!(!matches!(action, Action::Begin | Action::Extend));
            assert!(next != State::Open, "{input:?}");
        }
    }

    #[test]
    fn only_an_open_window_counts_and_only_data_extends_it() {
        for state in State::ALL {
            for input in Input::ALL {
                let (_, action) = state.on(input);
                assert_eq!(action == Action::Extend, state == State::Open && input == Input::Data);
                let ends = matches!(action, Action::End | Action::EndStalled | Action::EndStarved);
                let leaves = state == State::Open && state.on(input).0 != State::Open;
                assert_eq!(ends, leaves, "{state:?} {input:?}: a window that is left is closed");
            }
        }
    }
}
