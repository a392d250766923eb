//! Request ids in logs: a random word of the worker, and a number.

/// The request ids of one worker.
#[derive(Debug, Default)]
pub struct RequestIds {
    /// An unpredictable word; 0: not drawn yet.
    word: u64,
    last: u64,
}

impl RequestIds {
    /// The next number; never 0.
    pub fn next(&mut self, fill_randomly: fn(&mut [u8])) -> u64 {
        if self.word == 0 {
            let mut random = [0; 8];
            fill_randomly(&mut random);
            self.word = u64::from_le_bytes(random).max(1);
        }
        self.last += 1;
        self.last
    }

    /// The whole request id with this number.
    pub fn id(&self, number: u64) -> u128 {
        u128::from(self.word) << 64 | u128::from(number)
    }
}

#[cfg(test)]
mod tests {
    use super::RequestIds;

    #[test]
    fn each_has_a_name_of_its_own() {
        let mut ids = RequestIds::default();
        let fill = |bytes: &mut [u8]| bytes.fill(7);
        let numbers = [ids.next(fill), ids.next(fill)];
        assert_eq!(numbers, [1, 2]);
        assert_eq!(format!("{:032x}", ids.id(numbers[1])), "07070707070707070000000000000002");
    }
}
