/// What becomes of a request in which a check finds something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// The check is not done.
    Off,
    /// It is logged and counted.
    Alarm,
    /// The same, and the request is answered with the block page.
    Block,
}

impl Action {
    /// Its name in the configuration and in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Alarm => "alarm",
            Self::Block => "block",
        }
    }
}
