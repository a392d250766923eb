//! Invariants of bodies and trailer sections.

use weir_http::edits::TrailerEdits;
use weir_http::flaws::Flaws;
use weir_http::h1::{
    BodyDecoder, BodyError, BodyStep, CHUNK_HEADER_SIZE_MAX, HeadScan, ParseProgress, TrailerError,
    parse_trailers, parse_trailers_of_member, write_chunk_header, write_trailers,
};
use weir_http::message::{Field, Framing};

use super::{LIMITS, assert_clean_head, cuts, forwarded};

/// The result of decoding a whole body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub data: Vec<u8>,
    pub end: End,
}

/// The end of decoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The body is incomplete. `may_end_at_eof`: the end of the connection would end it.
    Open {
        may_end_at_eof: bool,
    },
    /// The body has ended after this number of bytes, with these forwarded trailer fields.
    Ended {
        consumed: usize,
        trailers: Vec<(Vec<u8>, Vec<u8>)>,
    },
    Refused(BodyError),
    TrailersRefused(TrailerError),
}

/// Decodes `input`, which arrives in two pieces, or byte by byte if `cut` is `None`.
pub fn decode(
    framing: Framing,
    size_max: Option<u64>,
    input: &[u8],
    cut: Option<usize>,
) -> Outcome {
    decode_by(BodyDecoder::new(framing, size_max), input, cut, Flaws::NONE).0
}

/// As [`decode`], for a member's body with tolerated flaws. Also returns the flaws found.
pub fn decode_of_member(
    framing: Framing,
    taken: Flaws,
    input: &[u8],
    cut: Option<usize>,
) -> (Outcome, Flaws) {
    decode_by(BodyDecoder::of_member(framing, taken), input, cut, taken)
}

fn decode_by(
    mut decoder: BodyDecoder,
    input: &[u8],
    cut: Option<usize>,
    taken: Flaws,
) -> (Outcome, Flaws) {
    let mut flaws = Flaws::NONE;
    let outcome = decode_all(&mut decoder, input, cut, taken, &mut flaws);
    let new = decoder.new_flaws();
    assert!(decoder.new_flaws().is_empty(), "told twice");
    flaws.add_all(new);
    assert_eq!(flaws.without(taken), Flaws::NONE);
    (outcome, flaws)
}

fn decode_all(
    decoder: &mut BodyDecoder,
    input: &[u8],
    cut: Option<usize>,
    taken: Flaws,
    flaws: &mut Flaws,
) -> Outcome {
    let mut data = Vec::new();
    let mut consumed = 0;
    let arrivals: Vec<usize> = match cut {
        Some(cut) => vec![cut, input.len()],
        None => (0..=input.len()).collect(),
    };
    for arrived in arrivals {
        loop {
            let mut other = decoder.clone();
            let rest = other.take_rest(&input[consumed..arrived]);
            let step = decoder.decode(&input[consumed..arrived]);
            if let Some(bytes) = rest {
                assert_eq!(step, Ok(BodyStep::Data { start: 0, end: bytes }));
                assert!(other.is_done() && decoder.is_done(), "not the rest");
            }
            match step {
                Ok(BodyStep::Data { start, end }) => {
                    assert!(start < end, "empty data");
                    assert_eq!(decoder.is_done(), rest.is_some(), "the rest was not taken");
                    data.extend_from_slice(&input[consumed + start..consumed + end]);
                    consumed += end;
                }
                Ok(BodyStep::NeedMore { consumed: more }) => {
                    consumed += more;
                    assert_eq!(consumed, arrived, "left bytes behind");
                    break;
                }
                Ok(BodyStep::Trailers { consumed: more }) => {
                    let section = consumed + more;
                    let end = end_with_trailers(decoder, input, section, taken, flaws);
                    return Outcome { data, end };
                }
                Ok(BodyStep::End { consumed: more }) => {
                    assert!(decoder.is_done() && decoder.may_end_at_eof());
                    return Outcome {
                        data,
                        end: End::Ended { consumed: consumed + more, trailers: Vec::new() },
                    };
                }
                Err(error) => {
                    return Outcome { data, end: End::Refused(error) };
                }
            }
        }
    }
    assert!(!decoder.is_done());
    Outcome { data, end: End::Open { may_end_at_eof: decoder.may_end_at_eof() } }
}

fn end_with_trailers(
    decoder: &mut BodyDecoder,
    input: &[u8],
    start: usize,
    taken: Flaws,
    flaws: &mut Flaws,
) -> End {
    assert!(!decoder.is_done() && !decoder.may_end_at_eof());
    let section = &input[start..];
    let (mut fields, mut repaired) = (Vec::new(), Vec::new());
    let edits = TrailerEdits::Keep;
    let by_member = (taken, flaws);
    match parse_trailers_of_member(section, &LIMITS, edits, by_member, (&mut repaired, &mut fields))
    {
        Ok(ParseProgress::Partial) => End::Open { may_end_at_eof: false },
        Ok(ParseProgress::Complete { length }) => {
            decoder.trailers_done();
            assert!(decoder.is_done());
            let section = if repaired.is_empty() { section } else { &repaired };
            check_trailers_forwarding(&fields, section);
            let owned = |(name, value): (&[u8], &[u8])| (name.to_vec(), value.to_vec());
            let trailers = forwarded(&fields, section).into_iter().map(owned).collect();
            End::Ended { consumed: start + length, trailers }
        }
        Err(error) => End::TrailersRefused(error),
    }
}

fn check_trailers_forwarding(fields: &[Field], section: &[u8]) {
    let mut sent = Vec::new();
    write_trailers(fields, section, &mut sent);
    assert_clean_head(&[b"HTTP".as_slice(), &sent].concat());
    let sent = sent.strip_prefix(b"0\r\n").expect("starts with the last chunk");
    let mut again = Vec::new();
    assert_eq!(
        parse_trailers(sent, &LIMITS, TrailerEdits::Keep, &mut again),
        Ok(ParseProgress::Complete { length: sent.len() })
    );
    assert_eq!(forwarded(&again, sent), forwarded(fields, section));
}

/// Checks all invariants of `input` as a chunked body.
pub fn check_chunked(input: &[u8]) {
    check(Framing::Chunked, None, input);
    check(Framing::Chunked, Some(input.len() as u64 / 4), input);
    check_lenient(input);
}

/// Checks that tolerance for flaws does not change a body without flaws, and that cuts do not change the result.
fn check_lenient(input: &[u8]) {
    let strict = decode(Framing::Chunked, None, input, Some(input.len()));
    for taken in [Flaws::USUAL, Flaws::ALL] {
        let of_member = |cut| decode_of_member(Framing::Chunked, taken, input, cut);
        let (whole, flaws) = of_member(Some(input.len()));
        if matches!(strict.end, End::Refused(_) | End::TrailersRefused(_)) {
            // A section that can be repaired is checked when it is complete.
            let is_judged = !matches!(whole.end, End::Open { .. });
            assert!(!flaws.is_empty() || !is_judged || whole.end == strict.end, "no flaw");
        } else {
            assert!(flaws.is_empty());
            assert_eq!(whole, strict);
        }
        for cut in cuts(input.len()).map(Some).chain([None]) {
            let (pieces, found) = of_member(cut);
            assert_eq!(pieces, whole, "cut at {cut:?}");
            assert_eq!(found, flaws, "cut at {cut:?}");
        }
        if let End::Ended { .. } = whole.end {
            check_rechunked(&whole.data);
        }
    }
}

/// Checks that cuts do not change the result, and that the forwarded body has the same result.
pub fn check(framing: Framing, size_max: Option<u64>, input: &[u8]) {
    let whole = decode(framing, size_max, input, Some(input.len()));
    // With `UntilClose`, the amount of data before an error depends on the cuts.
    let comparable =
        framing != Framing::UntilClose || whole.end != End::Refused(BodyError::TooLarge);
    for cut in cuts(input.len()).map(Some).chain([None]) {
        let pieces = decode(framing, size_max, input, cut);
        if comparable {
            assert_eq!(pieces, whole, "cut at {cut:?}");
        } else {
            assert_eq!(pieces.end, whole.end, "cut at {cut:?}");
        }
    }
    if let End::Ended { .. } = whole.end {
        check_rechunked(&whole.data);
    }
}

fn check_rechunked(data: &[u8]) {
    let mut sent = Vec::new();
    for chunk in data.chunks(7) {
        sent.extend_from_slice(write_chunk_header(
            chunk.len() as u64,
            &mut [0; CHUNK_HEADER_SIZE_MAX],
        ));
        sent.extend_from_slice(chunk);
        sent.extend_from_slice(b"\r\n");
    }
    write_trailers(&[], b"", &mut sent);
    assert!(sent.ends_with(weir_http::h1::LAST_CHUNK));
    let received = decode(Framing::Chunked, None, &sent, Some(sent.len()));
    let end = End::Ended { consumed: sent.len(), trailers: Vec::new() };
    assert_eq!(received, Outcome { data: data.to_vec(), end });
}

/// Checks that neither cuts nor the use of a scan change the result for a trailer section.
pub fn check_trailers(input: &[u8]) {
    for taken in [Flaws::NONE, Flaws::ALL] {
        check_trailers_by(input, taken);
    }
}

fn check_trailers_by(input: &[u8], taken: Flaws) {
    let (mut fields, mut repaired) = (Vec::new(), Vec::new());
    let mut parse = |input: &[u8]| {
        let mut flaws = Flaws::NONE;
        let by_member = (taken, &mut flaws);
        let edits = TrailerEdits::Keep;
        parse_trailers_of_member(input, &LIMITS, edits, by_member, (&mut repaired, &mut fields))
    };
    let whole = parse(input);
    let mut scan = HeadScan::section_of_member(taken);
    let mut by_scan = None;
    let mut by_parse = None;
    for cut in cuts(input.len()) {
        let outcome = parse(&input[..cut]);
        if scan.scan(&input[..cut], &LIMITS) && by_scan.is_none() {
            by_scan = Some(outcome);
        }
        if outcome != Ok(ParseProgress::Partial) && by_parse.is_none() {
            by_parse = Some(outcome);
        }
    }
    assert_eq!(by_parse.unwrap_or(Ok(ParseProgress::Partial)), whole, "in pieces");
    assert!(by_scan.is_none() || by_scan == Some(whole), "through the scan");
}
