//! The UDP protocol between load generator and origin: a query, and its answer of the requested length.
//!
//! ```text
//! query   "WBQ1"  number, 8 bytes  length of the answer, 2 bytes  filling
//! answer  "WBA1"  the same         the same                       filling
//! ```
//!
//! Numbers are in network order. An origin ignores other datagrams, so that a stray datagram causes no traffic.

const QUERY_MARK: &[u8; 4] = b"WBQ1";
const ANSWER_MARK: &[u8; 4] = b"WBA1";
const HEAD_BYTES: usize = 14;

/// Shortest query and answer.
pub const DATAGRAM_BYTES_MIN: usize = HEAD_BYTES;
/// Longest query and answer: an Ethernet frame of 1,500 bytes with IPv6 and UDP.
pub const DATAGRAM_BYTES_MAX: usize = 1_452;

/// Writes a query with that number. The whole `datagram` is the query.
pub fn write_query(datagram: &mut [u8], number: u64, answer_bytes: u16) {
    datagram[..4].copy_from_slice(QUERY_MARK);
    datagram[4..12].copy_from_slice(&number.to_be_bytes());
    datagram[12..HEAD_BYTES].copy_from_slice(&answer_bytes.to_be_bytes());
}

/// Turns the query of `length` bytes at the start of `buffer` into its answer. Returns the answer's length; `None` if
/// the datagram is not a query.
pub fn answer(buffer: &mut [u8; DATAGRAM_BYTES_MAX], length: usize) -> Option<usize> {
    if !(HEAD_BYTES..=DATAGRAM_BYTES_MAX).contains(&length) || buffer[..4] != *QUERY_MARK {
        return None;
    }
    let wanted = usize::from(u16::from_be_bytes([buffer[12], buffer[13]]));
    if !(HEAD_BYTES..=DATAGRAM_BYTES_MAX).contains(&wanted) {
        return None;
    }
    buffer[..4].copy_from_slice(ANSWER_MARK);
    if wanted > length {
        buffer[length..wanted].fill(0);
    }
    Some(wanted)
}

/// The number of the answered query, if the answer has the requested length.
pub fn number_answered(datagram: &[u8]) -> Option<u64> {
    let (mark, rest) = datagram.split_first_chunk::<4>()?;
    let (number, rest) = rest.split_first_chunk::<8>()?;
    let (wanted, _) = rest.split_first_chunk::<2>()?;
    let is_whole = usize::from(u16::from_be_bytes(*wanted)) == datagram.len();
    (mark == ANSWER_MARK && is_whole).then(|| u64::from_be_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_gets_the_answer_that_it_asks_for() {
        for (query_bytes, answer_bytes) in [(14, 14), (48, 128), (1_452, 14), (14, 1_452)] {
            let mut buffer = [7; DATAGRAM_BYTES_MAX];
            write_query(&mut buffer[..query_bytes], 4_711, answer_bytes);
            let length = answer(&mut buffer, query_bytes).expect("an answer");
            assert_eq!(length, usize::from(answer_bytes));
            assert_eq!(number_answered(&buffer[..length]), Some(4_711));
            assert_eq!(number_answered(&buffer[..length - 1]), None, "cut short");
            // An answer is not a query, so two origins cannot answer each other endlessly.
            assert_eq!(answer(&mut buffer, length), None);
        }
    }

    #[test]
    fn what_is_no_query_gets_no_answer() {
        let check = |length: usize, answer_bytes: u16| {
            let mut buffer = [0; DATAGRAM_BYTES_MAX];
            write_query(&mut buffer, 1, answer_bytes);
            assert_eq!(answer(&mut buffer, length), None, "{length} {answer_bytes}");
        };
        check(13, 100);
        check(0, 100);
        check(100, 13);
        check(100, 1_453);
        assert_eq!(answer(&mut [0; DATAGRAM_BYTES_MAX], 100), None);
        assert_eq!(number_answered(b""), None);
    }
}
