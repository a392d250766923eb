//! Balancing methods: one algorithm, one file.

/// How a pool picks the member of a new request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// Members in turn, by weight, interleaved.
    #[default]
    RoundRobin,
    /// The member with the fewest occupied connections in proportion to its weight.
    LeastConnections,
}

/// What a balancer may ask about the members it was built for, by their index.
pub trait View {
    /// Requests that occupy the member now, on all cores.
    fn occupancy(&self, index: usize) -> u32;
    /// Whether the member may take one more request (limit not reached, not tried already).
    fn admits(&self, index: usize) -> bool;
}
