//! Letters and their best fit.

use super::super::best_fit::{best_fit, is_full_width};

#[test]
fn letters_lose_their_marks() {
    for (letters, expected) in [
        ("ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏ", "AAAAAAACEEEEIIII"),
        ("ÐÑÒÓÔÕÖØÙÚÛÜÝ", "DNOOOOOOUUUUY"),
        ("àáâãäåæçèéêëìíîï", "aaaaaaaceeeeiiii"),
        ("ñòóôõöøùúûüýÿ", "noooooouuuuyy"),
        ("ĀāĂăĄąĆćĈĉĊċČčĎď", "AaAaAaCcCcCcCcDd"),
        ("ĐđĒēĔĕĖėĘęĚěĜĝĞğ", "DdEeEeEeEeEeGgGg"),
        ("ĠġĢģĤĥĦħĨĩĪīĬĭĮį", "GgGgHhHhIiIiIiIi"),
        ("İıĴĵĶķĹĺĻļĽľ", "IiJjKkLlLlLl"),
        ("ŁłŃńŅņŇňŌōŎŏ", "LlNnNnNnOoOo"),
        ("ŐőŒœŔŕŖŗŘřŚśŜŝŞş", "OoOoRrRrRrSsSsSs"),
        ("ŠšŢţŤťŦŧŨũŪūŬŭŮů", "SsTtTtTtUuUuUuUu"),
        ("ŰűŲųŴŵŶŷŸŹźŻżŽžſ", "UuUuWwYyYZzZzZzs"),
        ("‘’ʼ′“”″«»‹›–—⁄∖", "''''\"\"\"<><>--/\\"),
        ("\u{a0}\u{2003}\u{3000}", "   "),
        ("¡¢¤¥¦©ª®²³·¸¹º", "!c$Y|CaR23.,1o"),
        ("aZ<'", "aZ<'"),
    ] {
        let found: Option<Vec<u8>> =
            letters.chars().map(|letter| best_fit(u32::from(letter) as u16)).collect();
        assert_eq!(found.as_deref(), Some(expected.as_bytes()), "{letters}");
    }
}

#[test]
fn others_have_none() {
    for letter in ['×', '÷', 'Þ', 'þ', 'ß', 'ĸ', 'Ŀ', 'ŋ', 'Ĳ', 'я', '中', '\u{80}', '\u{ff1c}']
    {
        assert_eq!(best_fit(u32::from(letter) as u16), None, "{letter}");
    }
}

#[test]
fn full_width_forms() {
    for (code, expected) in
        [(0xff00, false), (0xff01, true), (0xff5e, true), (0xff5f, false), (0x21, false)]
    {
        assert_eq!(is_full_width(code), expected, "{code:x}");
    }
}
