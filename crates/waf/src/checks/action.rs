/// The action of a check that finds a problem in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// The check does not run.
    Off,
    /// The finding is logged and counted.
    Alarm,
    /// The finding is logged and counted, and the client gets the block page.
    Block,
}

impl Action {
    /// The name in the configuration and in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Alarm => "alarm",
            Self::Block => "block",
        }
    }
}
