//! Runs a policy's code so that its panics end neither the run nor the silence on standard error (LAB-3: catch the published selector's panics and report them).

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// What `call` returns, or nothing if it panics. Nothing is printed; panics elsewhere, also on other threads, are reported as before.
pub(crate) fn caught<T>(call: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
    let outer = QUIET.replace(true);
    // What the policy left half done is its own; nothing else is shared with it.
    let result = catch_unwind(AssertUnwindSafe(call));
    QUIET.set(outer);
    result.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_absent_answer() {
        assert_eq!(caught(|| 7), Some(7));
        assert_eq!(caught(|| -> u32 { panic!("not printed") }), None);
        assert!(!QUIET.get());
    }
}
