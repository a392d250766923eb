//! Lists with pages. Only the rows of the requested page are built.

use weir_api::dashboard::Rows;

use super::query::BoardQuery;

/// Maximum number of words in a search.
const WORDS_MAX: usize = 8;

/// The words of a search, in lower case.
pub(super) fn words(search: &str) -> Vec<String> {
    search.split_whitespace().take(WORDS_MAX).map(str::to_lowercase).collect()
}

/// Builds the requested page. `text`: the searched text of a row; `name`: the name of a row.
pub(super) fn rows<S, T>(
    wanted: &BoardQuery,
    all: Vec<S>,
    name: impl Fn(&S) -> String,
    text: impl Fn(&S) -> String,
    build: impl Fn(&S) -> T,
) -> Rows<T> {
    let total = all.len();
    let has = |item: &S| {
        let text = text(item).to_lowercase();
        wanted.words.iter().all(|word| text.contains(word.as_str()))
    };
    let found: Vec<S> = match wanted.words.is_empty() {
        true => all,
        false => all.into_iter().filter(has).collect(),
    };
    let pages = found.len().div_ceil(wanted.rows.max(1)).max(1);
    let page = wanted.page.clamp(1, pages);
    let shown = found.iter().skip((page - 1) * wanted.rows).take(wanted.rows);
    let shown: Vec<(String, T)> = shown.map(|item| (name(item), build(item))).collect();
    Rows {
        order: shown.iter().map(|(name, _)| name.clone()).collect(),
        items: shown.into_iter().collect(),
        found: found.len(),
        total,
        page,
        pages,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_searches() {
        let check = |search: &str, page: usize, expected: (&[u32], usize, usize, usize)| {
            let wanted =
                BoardQuery { words: words(search), page, rows: 3, ..BoardQuery::default() };
            let name = |number: &u32| number.to_string();
            let text = |number: &u32| {
                format!("Row {number} is {}", if number.is_multiple_of(2) { "Even" } else { "odd" })
            };
            let rows = rows(&wanted, (1..=10).collect(), name, text, |number| *number);
            let order: Vec<u32> = rows.order.iter().map(|name| rows.items[name]).collect();
            assert_eq!((&*order, rows.found, rows.page, rows.pages), expected, "{search} {page}");
            assert_eq!(rows.total, 10);
        };
        check("", 1, (&[1, 2, 3], 10, 1, 4));
        check("", 4, (&[10], 10, 4, 4));
        check("", 9, (&[10], 10, 4, 4));
        check(" EVEN row", 2, (&[8, 10], 5, 2, 2));
        check("nothing", 1, (&[], 0, 1, 1));
    }
}
