//! Damaged configurations: any file content gives findings, never a panic.

use proptest::prelude::any;
use proptest::test_runner::{Config, TestRunner};
use weir_config::{Colour, Resolutions, parse, render_json, render_text};
use weir_testing::cpu_time_of;

const SEEDS: u64 = 400;
const DAMAGES_MAX: u64 = 6;

const SOURCES: [&str; 3] = [
    include_str!("../../../examples/full.yaml"),
    include_str!("../../../examples/three-nginx.yaml"),
    include_str!("../../../examples/minimal.yaml"),
];

/// Pieces that are special somewhere: to YAML, to the language, or to both.
const PIECES: [&str; 40] = [
    "\t",
    "\n",
    "\r",
    "- ",
    ": ",
    ":",
    "{",
    "}",
    "[",
    "]",
    "*a",
    "&a ",
    "!!str ",
    "<<: ",
    "? ",
    "|",
    ">",
    "\"",
    "'",
    "#",
    "%",
    "---\n",
    "...\n",
    "\0",
    "\u{feff}",
    "\u{85}",
    "é",
    "\u{1f980}",
    "\\",
    "off",
    "null",
    "-1",
    "18446744073709551616",
    "99999999999h",
    "0x10",
    "1e9",
    "unix:",
    "[::1]:80",
    "a.example:1",
    "(",
];

/// All operations of a caller on a text.
fn exercise(text: &str) {
    let loaded = parse("weir.yaml", text);
    let errors =
        loaded.diagnostics.iter().any(|finding| finding.severity == weir_config::Severity::Error);
    assert_eq!(loaded.config.is_none(), errors);
    let rendered = render_text(&loaded.diagnostics, Colour::Never);
    assert!(rendered.lines().count() >= loaded.diagnostics.len());
    render_json(&loaded.diagnostics);
    if let Some(config) = loaded.config {
        let names = config.host_names().map(str::to_owned);
        let resolutions: Resolutions =
            names.map(|name| (name, vec![[127, 0, 0, 1].into(), [127, 0, 0, 1].into()])).collect();
        config.snapshot(&resolutions);
    }
}

/// SplitMix64, so that a seed always gives the same text.
struct Damage(u64);

impl Damage {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound.max(1)).expect("a length fits 64 bits");
        usize::try_from(self.next() % bound).expect("smaller than a length")
    }

    fn boundary(&mut self, text: &str) -> usize {
        let mut index = self.below(text.len() + 1);
        while !text.is_char_boundary(index) {
            index -= 1;
        }
        index
    }

    /// Inserts, deletes, duplicates or swaps a piece.
    fn apply(&mut self, text: &mut String) {
        let at = self.boundary(text);
        match self.below(4) {
            0 => {
                let piece = PIECES[self.below(PIECES.len())];
                text.insert_str(at, piece);
            }
            1 => {
                let mut end = (at + self.below(20)).min(text.len());
                while !text.is_char_boundary(end) {
                    end += 1;
                }
                text.replace_range(at..end, "");
            }
            2 => {
                let from = self.boundary(text);
                let mut end = (from + self.below(60)).min(text.len());
                while !text.is_char_boundary(end) {
                    end += 1;
                }
                let copy = text[from..end].to_owned();
                text.insert_str(at, &copy);
            }
            _ => {
                let tail = text.split_off(at);
                text.insert_str(0, &tail);
            }
        }
    }
}

#[test]
fn damaged_examples() {
    for seed in 0..SEEDS {
        let mut damage = Damage(seed);
        let mut text = SOURCES[damage.below(SOURCES.len())].to_owned();
        for _ in 0..=damage.next() % DAMAGES_MAX {
            damage.apply(&mut text);
        }
        let outcome = std::panic::catch_unwind(|| exercise(&text));
        assert!(outcome.is_ok(), "seed {seed} panics with:\n{text}");
    }
}

#[test]
fn arbitrary_text() {
    let mut runner =
        TestRunner::new(Config { cases: 300, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&any::<String>(), |text| {
        exercise(&text);
        Ok(())
    });
    assert!(outcome.is_ok(), "{outcome:?}");
}

#[test]
fn large_and_repetitive_texts_end_soon() {
    let cases = [
        "[".repeat(100_000),
        "{".repeat(100_000),
        "- ".repeat(100_000),
        "a: ".repeat(50_000),
        "? ".repeat(50_000),
        "a:\n ".repeat(50_000),
        format!("a: \"{}\"", "\\\\".repeat(200_000)),
        format!("virtual_servers: {{ {} }}", "a: {}, ".repeat(5_000)),
        "&a ".repeat(50_000),
        "!".repeat(100_000),
        format!("{}: 1", "k".repeat(100_000)),
        (0..20_000).map(|index| format!("k{index}: *a\n")).collect(),
    ];
    for text in &cases {
        let seconds = cpu_time_of(|| exercise(text)).as_secs();
        let shown: String = text.chars().take(20).collect();
        assert!(seconds < 10, "{seconds} s of CPU time for {shown}…");
    }
}
