//! Faults that the origin makes on purpose, to test whether clients detect them.

use std::str::FromStr;

/// Shares are stored in millionths, so that 1% is exactly every hundredth request.
const MILLION: u64 = 1_000_000;

/// One kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// Another status than 200, with a small body.
    Status(u16),
    /// The connection is reset without a response.
    Reset,
    /// The connection closes in the middle of the body.
    Short,
    /// A response that is not HTTP.
    Garbage,
    /// No response.
    Stall,
}

impl FaultKind {
    /// The fault's name in counts and arguments.
    pub fn name(self) -> String {
        match self {
            Self::Status(status) => status.to_string(),
            Self::Reset => "reset".to_owned(),
            Self::Short => "short".to_owned(),
            Self::Garbage => "garbage".to_owned(),
            Self::Stall => "stall".to_owned(),
        }
    }
}

impl FromStr for FaultKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "reset" => Ok(Self::Reset),
            "short" => Ok(Self::Short),
            "garbage" => Ok(Self::Garbage),
            "stall" => Ok(Self::Stall),
            _ => match text.parse() {
                Ok(status @ 200..=599) => Ok(Self::Status(status)),
                _ => Err(format!(
                    "{text}: a fault is a status from 200 to 599, reset, short, garbage or stall"
                )),
            },
        }
    }
}

/// A fault and its frequency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fault {
    /// The kind.
    pub kind: FaultKind,
    /// Share of the requests, from 0 to 1.
    pub share: f64,
}

/// Selects the requests that get a fault: evenly spread, and exactly the configured share.
#[derive(Debug)]
pub struct Schedule(Vec<DueFault>);

#[derive(Debug)]
struct DueFault {
    kind: FaultKind,
    millionths: u64,
    credit: u64,
}

impl Schedule {
    /// The schedule of one thread.
    pub fn new(faults: &[Fault]) -> Self {
        let due = |fault: &Fault| DueFault {
            kind: fault.kind,
            millionths: (fault.share * MILLION as f64).round() as u64,
            credit: 0,
        };
        Self(faults.iter().map(due).collect())
    }

    /// The fault of the next request, if any. If several faults are due, makes the most overdue one; the others stay
    /// due.
    pub fn next(&mut self) -> Option<FaultKind> {
        for due in &mut self.0 {
            due.credit += due.millionths;
        }
        let due =
            self.0.iter_mut().filter(|due| due.credit >= MILLION).max_by_key(|due| due.credit)?;
        due.credit -= MILLION;
        Some(due.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_come_as_often_as_asked() {
        let mut schedule = Schedule::new(&[
            Fault { kind: FaultKind::Status(503), share: 0.01 },
            Fault { kind: FaultKind::Reset, share: 0.002 },
        ]);
        // Both faults are due at request 10,000; one is delayed.
        let made: Vec<_> = (0..10_001).filter_map(|_| schedule.next()).collect();
        let count = |kind| made.iter().filter(|&&made| made == kind).count();
        assert_eq!((count(FaultKind::Status(503)), count(FaultKind::Reset)), (100, 20));
        assert_eq!(Schedule::new(&[]).next(), None);
    }

    #[test]
    fn faults_share_what_is_too_little_for_all() {
        let every = |kind| Fault { kind, share: 1.0 };
        let mut schedule = Schedule::new(&[
            every(FaultKind::Reset),
            every(FaultKind::Short),
            every(FaultKind::Stall),
        ]);
        let made: Vec<_> = (0..3_000).filter_map(|_| schedule.next()).collect();
        for kind in [FaultKind::Reset, FaultKind::Short, FaultKind::Stall] {
            assert_eq!(made.iter().filter(|&&made| made == kind).count(), 1_000, "{kind:?}");
        }
    }

    #[test]
    fn names_of_faults() {
        for name in ["503", "reset", "short", "garbage", "stall"] {
            assert_eq!(name.parse::<FaultKind>().map(FaultKind::name), Ok(name.to_owned()));
        }
        for bad in ["", "199", "600", "crash"] {
            assert!(bad.parse::<FaultKind>().is_err(), "{bad}");
        }
    }
}
