//! Ends of blanks, numbers, names and texts.

/// The length of the blank at `at`, or 0. Each control character is a blank for some database, and U+00A0 too.
pub(super) fn blank_length(input: &[u8], at: usize) -> usize {
    let before = |at: usize| at.checked_sub(1).and_then(|before| input.get(before)).copied();
    match input.get(at) {
        Some(0..=0x20 | 0x7f) => 1,
        // In Latin-1, this byte is a blank. In UTF-8, it is part of a letter, except in U+00A0 itself.
        Some(0xa0) if before(at).is_none_or(|byte| byte < 0x80) => 1,
        Some(0xc2) if input.get(at + 1) == Some(&0xa0) => 2,
        _ => 0,
    }
}

pub(super) fn is_word_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

/// The end of the name that begins at `at`, including names joined to it by dots.
pub(super) fn name_end(input: &[u8], at: usize) -> usize {
    let mut end = at;
    while let Some(&byte) = input.get(end) {
        let joins = || {
            let after = input.get(end + 1).copied().unwrap_or(0);
            end > at
                && (is_word_start(after)
                    || (after == b'.' && input.get(end + 2).copied().is_some_and(is_word_start)))
        };
        match byte {
            _ if blank_length(input, end) > 0 => break,
            b'$' | b'0'..=b'9' => end += 1,
            b'.' if joins() => end += if input.get(end + 1) == Some(&b'.') { 2 } else { 1 },
            _ if is_word_start(byte) => end += 1,
            _ => break,
        }
    }
    end
}

/// The end of the number that begins at `at`.
pub(super) fn number_end(input: &[u8], at: usize) -> usize {
    let digits = |from: usize, is: fn(&u8) -> bool| {
        from + input.get(from..).unwrap_or_default().iter().take_while(|byte| is(byte)).count()
    };
    let radix: Option<fn(&u8) -> bool> = match (input.get(at), input.get(at + 1)) {
        (Some(b'0'), Some(b'x' | b'X')) => Some(u8::is_ascii_hexdigit),
        (Some(b'0'), Some(b'b' | b'B')) => Some(|byte| matches!(byte, b'0' | b'1')),
        _ => None,
    };
    if let Some(is) = radix {
        let end = digits(at + 2, is);
        return if end > at + 2 { end } else { at + 1 };
    }
    let mut end = digits(at, u8::is_ascii_digit);
    // `1.union` and `20.to_i` are a number and a word: before a letter, the dot is a separate token.
    if input.get(end) == Some(&b'.') && !input.get(end + 1).is_some_and(|byte| is_word_start(*byte))
    {
        end = digits(end + 1, u8::is_ascii_digit);
    }
    if matches!(input.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(input.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign, u8::is_ascii_digit);
        if exponent > end + 1 + sign {
            end = exponent;
        }
    }
    end
}

/// The position after the quote that ends a text, if there is one. A doubled quote is a literal quote.
pub(super) fn text_end(input: &[u8], mut at: usize, quote: u8, backslashes: bool) -> Option<usize> {
    loop {
        let rest = input.get(at..)?;
        let length = if backslashes {
            memchr::memchr2(quote, b'\\', rest)?
        } else {
            memchr::memchr(quote, rest)?
        };
        let found = at + length;
        if input.get(found) == Some(&b'\\') || input.get(found + 1) == Some(&quote) {
            at = found + 2;
        } else {
            return Some(found + 1);
        }
    }
}

/// Whether a word before a quote is a prefix of the text: `N'...'`, `_utf8'...'`.
pub(super) fn is_text_prefix(word: &[u8]) -> bool {
    matches!(word, [b'n' | b'N' | b'x' | b'X' | b'b' | b'B' | b'e' | b'E'] | [b'_', ..])
}

/// The end of the first comment that contains the beginning of another one.
pub(super) fn nested_comment_end(input: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let start = at + find_pair(input.get(at..)?, *b"/*")? + 2;
        let rest = input.get(start..)?;
        let length = find_pair(rest, *b"*/")?;
        // The slash of `*/` may also be the slash of `/*`, so the star counts as content.
        if find_pair(rest.get(..length + 1)?, *b"/*").is_some() {
            return Some(start + length + 2);
        }
        at = start + length + 2;
    }
}

/// The position of the first occurrence of two adjacent bytes.
pub(super) fn find_pair(input: &[u8], pair: [u8; 2]) -> Option<usize> {
    memchr::memchr_iter(pair[0], input).find(|place| input.get(place + 1) == Some(&pair[1]))
}
