use super::*;

const LIMITS: ListLimits =
    ListLimits { size_max: 16 * 1024, lines_max: 100, hard_size_max: 64 * 1024 };

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let value = |digit: u8| (digit as char).to_digit(16).expect("a digit") as u8;
    digits.chunks(2).map(|pair| value(pair[0]) << 4 | value(pair[1])).collect()
}

fn list(block: &HeaderBlock) -> String {
    let mut text = String::new();
    for line in block.lines() {
        let (name, value) = (line.name.of(block.text()), line.value.of(block.text()));
        text.push_str(&format!("{}: {}\n", name.escape_ascii(), value.escape_ascii()));
    }
    text
}

fn decode(decoder: &mut Decoder, input: &[u8]) -> Result<String, HpackError> {
    let mut block = HeaderBlock::new();
    decoder.decode(input, &LIMITS, &mut block)?;
    decoder.check_invariants();
    assert_eq!(block.text().escape_ascii().to_string(), {
        let lines: Vec<u8> = block
            .lines()
            .iter()
            .flat_map(|line| {
                let (name, value) = (line.name.of(block.text()), line.value.of(block.text()));
                [name, b": ", value, b"\r\n"].concat()
            })
            .collect();
        lines.escape_ascii().to_string()
    });
    Ok(list(&block))
}

#[test]
fn single_lines_of_the_standard() {
    // RFC 7541 appendix C.2.
    for (hex, expected, never_indexed) in [
        (
            "400a637573746f6d2d6b65790d637573746f6d2d686561646572",
            "custom-key: custom-header\n",
            false,
        ),
        ("040c2f73616d706c652f70617468", ":path: /sample/path\n", false),
        ("100870617373776f726406736563726574", "password: secret\n", true),
        ("82", ":method: GET\n", false),
    ] {
        let mut block = HeaderBlock::new();
        assert_eq!(Decoder::new().decode(&bytes_of(hex), &LIMITS, &mut block), Ok(()));
        assert_eq!(list(&block), expected);
        assert_eq!(block.lines()[0].never_indexed, never_indexed);
    }
}

const REQUESTS: [&str; 3] = [
    ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\n",
    ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\ncache-control: no-cache\n",
    ":method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\n\
     custom-key: custom-value\n",
];

const RESPONSES: [&str; 3] = [
    ":status: 302\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\n\
     location: https://www.example.com\n",
    ":status: 307\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\n\
     location: https://www.example.com\n",
    ":status: 200\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:22 GMT\n\
     location: https://www.example.com\ncontent-encoding: gzip\n\
     set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1\n",
];

#[test]
fn requests_of_the_standard() {
    // RFC 7541 appendix C.3 and C.4.
    for blocks in [
        [
            "828684410f7777772e6578616d706c652e636f6d",
            "828684be58086e6f2d6361636865",
            "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
        ],
        [
            "828684418cf1e3c2e5f23a6ba0ab90f4ff",
            "828684be5886a8eb10649cbf",
            "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
        ],
    ] {
        let mut decoder = Decoder::new();
        for (hex, expected) in std::iter::zip(blocks, REQUESTS) {
            assert_eq!(decode(&mut decoder, &bytes_of(hex)).as_deref(), Ok(expected));
        }
    }
}

#[test]
fn responses_of_the_standard() {
    // RFC 7541 appendix C.5 and C.6, with a table of 256 bytes.
    for blocks in [
        [
            "4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e\
             1768747470733a2f2f7777772e6578616d706c652e636f6d",
            "4803333037c1c0bf",
            "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d\
             4153444a4b48514b425a584f5157454f5049554158515745 4f49553b206d61782d6167653d333630303b20766572\
             73696f6e3d31",
        ],
        [
            "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b\
             97c8e9ae82ae43d3",
            "4883640effc1c0bf",
            "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdf\
             cd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
        ],
    ] {
        let mut decoder = Decoder::new();
        // The standard's examples start from this size by agreement.
        assert_eq!(decode(&mut decoder, &[0x3f, 0xe1, 0x01]).as_deref(), Ok(""));
        for (hex, expected) in std::iter::zip(blocks, RESPONSES) {
            assert_eq!(decode(&mut decoder, &bytes_of(hex)).as_deref(), Ok(expected));
        }
    }
}

#[test]
fn malformed_blocks() {
    for (block, expected) in [
        (&[0x80][..], HpackError::Index),
        (&[0xbe], HpackError::Index),
        (&[0xff, 0x00], HpackError::Index),
        (&[0x7e, 0x00], HpackError::Index),
        (&[0xff, 0x80, 0x80, 0x80, 0x80, 0x01], HpackError::Integer),
        (&[0x40], HpackError::Truncated),
        (&[0x40, 0x01], HpackError::Truncated),
        (&[0x40, 0x01, b'a'], HpackError::Truncated),
        (&[0x40, 0x01, b'a', 0x02, b'b'], HpackError::Truncated),
        (&[0x0f], HpackError::Truncated),
        (&[0xff], HpackError::Truncated),
        (&[0x82, 0x20], HpackError::SizeUpdatePlace),
        (&[0x3f, 0xe2, 0x1f], HpackError::SizeUpdateTooLarge),
        (&[0x40, 0x81, 0xff, 0x00], HpackError::Huffman),
        (&[0x40, 0x84, 0xff, 0xff, 0xff, 0xff, 0x00], HpackError::Huffman),
    ] {
        assert_eq!(decode(&mut Decoder::new(), block), Err(expected), "{block:x?}");
    }
}

#[test]
fn a_smaller_setting_must_be_followed() {
    let mut decoder = Decoder::new();
    decoder.set_table_size_bound(100);
    assert_eq!(decode(&mut decoder.clone(), &[0x82]), Err(HpackError::SizeUpdateMissing));
    assert_eq!(
        decode(&mut decoder.clone(), &[0x3f, 0x46]),
        Err(HpackError::SizeUpdateTooLarge),
        "101"
    );
    assert_eq!(decode(&mut decoder, &[0x3f, 0x45, 0x82]).as_deref(), Ok(":method: GET\n"));
    assert_eq!(decode(&mut decoder, &[0x20, 0x3f, 0x45, 0x82]).as_deref(), Ok(":method: GET\n"));
    decoder.set_table_size_bound(4096);
    assert_eq!(decode(&mut decoder, &[0x82]).as_deref(), Ok(":method: GET\n"));
}

/// A line that is added to the table, then references to it.
fn bomb(value_length: usize, references: usize) -> Vec<u8> {
    let mut input = vec![0x40, 1, b'a'];
    integer::write(value_length, 7, 0, &mut input);
    input.extend(std::iter::repeat_n(b'x', value_length));
    input.extend(std::iter::repeat_n(0xbe, references));
    input
}

#[test]
fn limits_hold_and_the_table_stays_in_step() {
    let limits = ListLimits { size_max: 1000, lines_max: 5, hard_size_max: 10_000 };
    let mut block = HeaderBlock::new();
    for (value_length, references, kept, excess) in [
        (67, 4, 5, None),
        (67, 5, 5, Some(Excess::Lines)),
        (300, 1, 2, None),
        (300, 2, 3, None),
        (301, 2, 2, Some(Excess::Size)),
        (3000, 1, 0, Some(Excess::Size)),
    ] {
        let mut decoder = Decoder::new();
        let input = bomb(value_length, references);
        assert_eq!(decoder.decode(&input, &limits, &mut block), Ok(()));
        assert_eq!((block.lines().len(), block.excess()), (kept, excess), "{value_length}");
        assert_eq!(block.list_size(), (references + 1) * (value_length + 33));
        assert_eq!(decoder.decode(&[0xbe], &LIMITS, &mut block), Ok(()));
        assert_eq!(block.lines()[0].value.len(), value_length);
    }
    // A decompression bomb uses no more memory than its limit plus its longest string.
    let mut decoder = Decoder::new();
    let outcome = decoder.decode(&bomb(3000, 60_000), &limits, &mut block);
    assert_eq!(outcome, Err(HpackError::ListTooLarge));
    assert!(block.list_size() < 10_000 + 3_100 && HeaderBlock::memory_size(&block) < 16_000);
}

/// xorshift64*, as in the other tests.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }
}

const NAMES: [&str; 14] = [
    ":method",
    ":path",
    ":status",
    "accept",
    "cookie",
    "set-cookie",
    "authorization",
    "date",
    "x-a",
    "x-b",
    "user-agent",
    "content-length",
    "x-long-name-that-is-not-in-any-table",
    "te",
];

#[test]
fn what_is_encoded_is_decoded_whatever_the_tables_do() {
    for seed in 1..=200 {
        let mut random = Random(seed);
        let (mut encoder, mut decoder) = (Encoder::new(4096), Decoder::new());
        for _ in 0..30 {
            if random.below(6) == 0 {
                let size = [0, 32, 100, 1000, 4096, 65_536][random.below(6)];
                encoder.set_peer_table_size(size);
                // The peer's decoder permits the size of its own setting.
                decoder.set_table_size_bound(size);
            }
            let mut expected = Vec::new();
            for _ in 0..random.below(20) {
                let name = NAMES[random.below(NAMES.len())].as_bytes().to_vec();
                let longest = if random.below(10) == 0 { 3000 } else { 40 };
                let length = random.below(longest);
                let letters = [&b"abc"[..], b"aA0\xff~"][random.below(2)];
                let value: Vec<u8> =
                    (0..length).map(|_| letters[random.below(letters.len())]).collect();
                let value = if random.below(2) == 0 { b"again".to_vec() } else { value };
                expected.push((name, value, random.below(10) == 0));
            }
            let mut out = b"before".to_vec();
            let mut lines = encoder.block(&mut out);
            for (name, value, never_indexed) in &expected {
                lines.field_of_any_case(name, value, *never_indexed);
            }
            encoder.check_invariants();
            let limits = ListLimits { size_max: 1 << 20, lines_max: 100, hard_size_max: 1 << 20 };
            let mut block = HeaderBlock::new();
            let outcome = decoder.decode(&out[6..], &limits, &mut block);
            assert_eq!(outcome, Ok(()), "seed {seed}");
            decoder.check_invariants();
            let text = block.text();
            let received: Vec<_> = block
                .lines()
                .iter()
                .map(|line| (line.name.of(text).to_vec(), line.value.of(text).to_vec()))
                .collect();
            let sent: Vec<_> =
                expected.iter().map(|(name, value, _)| (name.clone(), value.clone())).collect();
            assert_eq!(received, sent, "seed {seed}");
            for (line, (_, _, never_indexed)) in std::iter::zip(block.lines(), &expected) {
                assert!(line.never_indexed || !never_indexed, "seed {seed}");
            }
        }
    }
}

#[test]
fn secrets_are_never_indexed_and_repeated_lines_become_a_byte() {
    let mut encoder = Encoder::new(4096);
    let mut decoder = Decoder::new();
    let mut sizes = Vec::new();
    for _ in 0..3 {
        let mut out = Vec::new();
        let mut lines = encoder.block(&mut out);
        lines.field(b"authorization", b"Basic abc");
        lines.field(b"cookie", b"a=b");
        lines.field(b"user-agent", b"a browser of some kind");
        lines.field(b":method", b"GET");
        lines.field_of_any_case(b"X-Secret", b"s", true);
        let mut block = HeaderBlock::new();
        assert_eq!(decoder.decode(&out, &LIMITS, &mut block), Ok(()));
        let never: Vec<bool> = block.lines().iter().map(|line| line.never_indexed).collect();
        assert_eq!(never, [true, true, false, false, true]);
        sizes.push(out.len());
    }
    assert!(sizes[2] + 15 < sizes[1], "{sizes:?}");
    assert!(sizes[1] <= sizes[0]);
}

#[test]
fn the_smallest_size_between_two_blocks_is_told() {
    let (mut encoder, mut decoder) = (Encoder::new(4096), Decoder::new());
    let mut block = HeaderBlock::new();
    for sizes in [&[][..], &[], &[], &[0, 4096], &[], &[4096, 50, 100, 4096], &[100]] {
        for size in sizes {
            encoder.set_peer_table_size(*size);
        }
        let mut out = Vec::new();
        let mut lines = encoder.block(&mut out);
        for number in [1, 2, 3] {
            lines.field(b"x-again", format!("value {number}").as_bytes());
        }
        assert_eq!(decoder.decode(&out, &LIMITS, &mut block), Ok(()), "{sizes:?}");
        assert_eq!(list(&block), "x-again: value 1\nx-again: value 2\nx-again: value 3\n");
        decoder.check_invariants();
    }
    let mut out = Vec::new();
    encoder.set_peer_table_size(0);
    encoder.set_peer_table_size(4096);
    let _ = encoder.block(&mut out);
    assert_eq!(out, [0x20, 0x3f, 0xe1, 0x1f]);
}
