//! Prefix codes of bounded length (RFC 1951 section 3.2.2).

/// Maximum number of symbols of a code.
const SYMBOLS_MAX: usize = 288;

/// Maximum code length of all codes.
const LENGTH_MAX: usize = 15;

/// A code for `N` symbols.
#[derive(Debug, Clone)]
pub(super) struct Codes<const N: usize> {
    /// Code lengths; 0: the symbol does not occur.
    pub(super) lengths: [u8; N],
    /// The bits of each code, first bit lowest, and its length from bit 24 on.
    pub(super) packed: [u32; N],
}

/// Position of the length in a packed code.
pub(super) const PACKED_LENGTH_SHIFT: u32 = 24;

impl<const N: usize> Codes<N> {
    /// The code with the shortest output for these frequencies; nearly the shortest if that would need codes longer than
    /// `length_max`. At least two symbols have codes.
    pub(super) fn for_frequencies(frequencies: &[u32; N], length_max: usize) -> Self {
        let mut sorted = [(0, 0); N];
        let mut count = 0;
        for (symbol, &frequency) in frequencies.iter().enumerate() {
            if frequency > 0 {
                sorted[count] = (frequency, symbol as u16);
                count += 1;
            }
        }
        for (symbol, &frequency) in frequencies.iter().enumerate() {
            if count < 2 && frequency == 0 {
                sorted[count] = (1, symbol as u16);
                count += 1;
            }
        }
        let sorted = &mut sorted[..count];
        sorted.sort_unstable();
        let mut counts = count_lengths(sorted, length_max);
        let mut lengths = [0; N];
        let mut length = length_max;
        for &(_, symbol) in sorted.iter() {
            while counts[length] == 0 {
                length -= 1;
            }
            counts[length] -= 1;
            lengths[usize::from(symbol)] = length as u8;
        }
        Self::for_lengths(lengths)
    }

    /// The code with these lengths; shorter codes come first, then the order of symbols.
    pub(super) fn for_lengths(lengths: [u8; N]) -> Self {
        let mut next = [0_u16; LENGTH_MAX + 2];
        for &length in lengths.iter().filter(|length| **length > 0) {
            next[usize::from(length) + 1] += 1;
        }
        let mut code = 0;
        for slot in &mut next {
            code = (code + *slot) << 1;
            *slot = code;
        }
        let mut packed = [0; N];
        for (slot, &length) in std::iter::zip(&mut packed, &lengths) {
            if length > 0 {
                let next = &mut next[usize::from(length)];
                let bits = next.reverse_bits() >> (16 - u32::from(length));
                *slot = u32::from(bits) | u32::from(length) << PACKED_LENGTH_SHIFT;
                *next = next.wrapping_add(1);
            }
        }
        Self { lengths, packed }
    }

    /// Number of bits of a text with these frequencies.
    pub(super) fn cost_bits(&self, frequencies: &[u32; N]) -> u64 {
        let costs = std::iter::zip(&self.lengths, frequencies);
        costs.map(|(length, frequency)| u64::from(*length) * u64::from(*frequency)).sum()
    }
}

/// The number of codes of each length. `sorted`: two or more symbols, the rarest first.
fn count_lengths(sorted: &[(u32, u16)], length_max: usize) -> [u16; LENGTH_MAX + 1] {
    let leaves = sorted.len();
    let root = 2 * leaves - 2;
    // Leaves, then the nodes that join two of them (Huffman 1952). Both are sorted by weight, so the next two nodes to join
    // are at the front of one or the other.
    let mut weights = [0; 2 * SYMBOLS_MAX];
    let mut parents = [0; 2 * SYMBOLS_MAX];
    for (weight, (frequency, _)) in std::iter::zip(&mut weights, sorted) {
        *weight = *frequency;
    }
    let (mut leaf, mut inner) = (0, leaves);
    for node in leaves..=root {
        for _ in 0..2 {
            let is_leaf = leaf < leaves && (inner >= node || weights[leaf] <= weights[inner]);
            let next = if is_leaf { &mut leaf } else { &mut inner };
            weights[node] += weights[*next];
            parents[*next] = node;
            *next += 1;
        }
    }
    let mut depths = [0_usize; 2 * SYMBOLS_MAX];
    let mut counts = [0; LENGTH_MAX + 1];
    for node in (0..root).rev() {
        depths[node] = depths[parents[node]] + 1;
        if node < leaves {
            counts[depths[node].min(length_max)] += 1;
        }
    }
    shorten(&mut counts, length_max);
    counts
}

/// Limiting codes to `length_max` may give more codes than fit. Then a shorter code is made longer, and one of the longest
/// codes takes the place that this frees.
fn shorten(counts: &mut [u16; LENGTH_MAX + 1], length_max: usize) {
    let room = 1_u32 << length_max;
    let taken = |counts: &[u16]| -> u32 {
        (1..=length_max).map(|length| u32::from(counts[length]) << (length_max - length)).sum()
    };
    for _ in room..taken(counts) {
        let shorter = (1..length_max).rev().find(|length| counts[*length] > 0);
        if let Some(length) = shorter {
            counts[length_max] -= 1;
            counts[length] -= 1;
            counts[length + 1] += 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a code is complete: every sequence of bits belongs to a symbol.
    fn is_complete<const N: usize>(codes: &Codes<N>) -> bool {
        let used = codes.lengths.iter().filter(|length| **length > 0);
        used.map(|length| 1_u32 << (LENGTH_MAX - usize::from(*length))).sum::<u32>()
            == 1 << LENGTH_MAX
    }

    #[test]
    fn rare_symbols_have_long_codes() {
        let codes = Codes::for_frequencies(&[1, 0, 1, 2, 4, 8], 15);
        assert_eq!(codes.lengths, [4, 0, 4, 3, 2, 1]);
        assert!(is_complete(&codes));
        assert_eq!(codes.cost_bits(&[1, 0, 1, 2, 4, 8]), 4 + 4 + 6 + 8 + 8);
        let bits: Vec<u32> = codes.packed.iter().map(|packed| packed & 0xffff).collect();
        assert_eq!(bits, [0b0111, 0, 0b1111, 0b011, 0b01, 0]);
    }

    #[test]
    fn codes_are_no_longer_than_asked() {
        // Fibonacci numbers give the longest codes.
        let mut frequencies = [1_u32; 30];
        for at in 2..30 {
            frequencies[at] = frequencies[at - 1] + frequencies[at - 2];
        }
        for length_max in [5, 7, 10, 15] {
            let codes = Codes::for_frequencies(&frequencies, length_max);
            assert!(is_complete(&codes), "{length_max}");
            assert!(codes.lengths.iter().all(|length| usize::from(*length) <= length_max));
            assert!(codes.lengths.is_sorted_by(|one, other| one >= other));
        }
    }

    #[test]
    fn there_are_always_two_codes() {
        assert_eq!(Codes::for_frequencies(&[0; 5], 15).lengths, [1, 1, 0, 0, 0]);
        assert_eq!(Codes::for_frequencies(&[9, 0, 0], 15).lengths, [1, 1, 0]);
        assert_eq!(Codes::for_frequencies(&[0, 0, 9], 15).lengths, [1, 0, 1]);
    }
}
