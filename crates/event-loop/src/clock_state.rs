//! Whether the kernel reports the wall clock as synchronised.

use std::io;
use std::mem::MaybeUninit;

/// The kernel's report about the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockState {
    /// A time service sets the clock.
    Yes {
        /// The maximum error, in milliseconds.
        error_max_ms: u64,
    },
    /// The clock is not synchronised: no time service sets it, or its last update was hours ago.
    No,
}

/// Reads the state of the clock from the kernel (adjtimex(2)). The call changes nothing and needs no privilege.
pub fn look() -> io::Result<ClockState> {
    let mut clock = MaybeUninit::<libc::timex>::zeroed();
    // SAFETY: all fields of the structure are integers, for which zero is valid. With `modes` of zero the kernel only writes
    // to the structure, which lives through the call.
    let (state, clock) = unsafe {
        let state = libc::adjtimex(clock.as_mut_ptr());
        (state, clock.assume_init())
    };
    if state < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(judge(state, clock.status, clock.maxerror))
}

/// Interprets the clock state, its status bits and its maximum error in microseconds.
fn judge(state: i32, status: i32, error_max_us: libc::c_long) -> ClockState {
    if state == libc::TIME_ERROR || status & libc::STA_UNSYNC != 0 {
        return ClockState::No;
    }
    ClockState::Yes { error_max_ms: u64::try_from(error_max_us / 1_000).unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_the_clock() {
        let yes = |error_max_ms| ClockState::Yes { error_max_ms };
        for (state, status, error_max_us, expected) in [
            (libc::TIME_OK, 0, 12_345, yes(12)),
            (libc::TIME_INS, libc::STA_PLL, 500_000, yes(500)),
            (libc::TIME_ERROR, 0, 12_345, ClockState::No),
            (libc::TIME_OK, libc::STA_UNSYNC, 16_000_000, ClockState::No),
        ] {
            assert_eq!(judge(state, status, error_max_us), expected, "{state} {status}");
        }
    }

    #[test]
    fn the_kernel_answers() {
        look().expect("any process may ask");
    }
}
