//! Bodies generated from a seed: web pages, data and noise for an encoder.

use crate::Random;

/// A page of products: repeated markup, words with the frequencies of a natural language, and unique numbers and
/// identifiers. Level 5 of zlib removes about four fifths of it.
pub fn html(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    let vocabulary: Vec<String> = (0..1_500).map(|_| word(&mut random)).collect();
    let mut page = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>Catalogue</title>\
         <link rel=\"stylesheet\" href=\"/static/main.css\"></head>\n<body>\n<main class=\"grid\">\n",
    );
    while page.len() < bytes {
        product(&mut random, &vocabulary, &mut page);
    }
    page.truncate(bytes);
    page.into_bytes()
}

fn product(random: &mut Random, vocabulary: &[String], page: &mut String) {
    let id = random.next();
    let price = random.below(100_000);
    page.push_str(&format!(
        "<article class=\"card\" id=\"p-{:08x}\" data-sku=\"{:06}\">\n  <a class=\"card__link\" \
         href=\"/products/{}-{:04x}\">\n    <img class=\"card__image\" loading=\"lazy\" width=\"320\" \
         height=\"240\" src=\"/media/{:06x}.webp\" alt=\"\">\n    <h2 class=\"card__title\">",
        id as u32,
        random.below(1_000_000),
        pick(random, vocabulary),
        random.below(65_536),
        random.below(1 << 24),
    ));
    sentence(random, vocabulary, 4, page);
    page.push_str("</h2>\n  </a>\n  <p class=\"card__text\">");
    for _ in 0..1 + random.below(3) {
        let words = 8 + random.below(14);
        sentence(random, vocabulary, words, page);
        page.push_str(". ");
    }
    page.push_str(&format!(
        "</p>\n  <span class=\"card__price\">{}.{:02} EUR</span>\n  <button type=\"button\" \
         class=\"button button--primary\">Add to basket</button>\n</article>\n",
        price / 100,
        price % 100
    ));
}

fn sentence(random: &mut Random, vocabulary: &[String], words: usize, page: &mut String) {
    for number in 0..words {
        if number > 0 {
            page.push(' ');
        }
        page.push_str(pick(random, vocabulary));
    }
}

/// Picks a word: a few words are frequent, most are rare.
fn pick<'v>(random: &mut Random, vocabulary: &'v [String]) -> &'v str {
    let range = 1 + random.below(vocabulary.len());
    &vocabulary[random.below(range)]
}

fn word(random: &mut Random) -> String {
    const ONSETS: [&str; 16] =
        ["b", "c", "d", "f", "g", "l", "m", "n", "p", "r", "s", "t", "st", "tr", "ch", "th"];
    const RIMES: [&str; 12] = ["a", "e", "i", "o", "u", "an", "er", "in", "on", "al", "ent", "ing"];
    (0..1 + random.below(3))
        .map(|_| [ONSETS[random.below(ONSETS.len())], RIMES[random.below(RIMES.len())]].concat())
        .collect()
}

/// A body of a random kind: empty, tiny, noise, a single repeated byte, markup, or a mixture. Its length is at most
/// `bytes_max`.
pub fn body(random: &mut Random, bytes_max: usize) -> Vec<u8> {
    let bytes = 1 + random.below(bytes_max);
    match random.below(8) {
        0 => Vec::new(),
        1 => vec![random.next() as u8],
        2 => noise(random, bytes),
        3 => vec![random.next() as u8; bytes],
        4 => std::iter::repeat_with(|| b"abcd"[random.below(4)]).take(bytes).collect(),
        5 => {
            let mut mixed = html(random.next(), bytes / 2);
            mixed.extend(noise(random, bytes - bytes / 2));
            mixed
        }
        _ => html(random.next(), bytes),
    }
}

/// Incompressible bytes.
pub fn noise(random: &mut Random, bytes: usize) -> Vec<u8> {
    std::iter::repeat_with(|| random.next() as u8).take(bytes).collect()
}

/// Uniform rows with noise between them, like the HTML of the benchmark's origin. Level 5 of zlib removes three quarters of
/// it. It does not resemble natural language.
pub fn rows(seed: u64, bytes: usize) -> Vec<u8> {
    const ROW: &[u8] = b"<tr class=\"row even\"><td class=\"name\">Item</td><td class=\"value\">\
        how much of it goes where, and why</td></tr>\n";
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut random = Random::new(seed);
    let mut page = Vec::with_capacity(bytes + 2 * ROW.len());
    while page.len() < bytes {
        page.extend_from_slice(ROW);
        page.extend(std::iter::repeat_with(|| DIGITS[random.below(64)]).take(ROW.len() * 46 / 100));
    }
    page.truncate(bytes);
    page
}
