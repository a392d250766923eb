//! Pagination of lists: with thousands of objects, a list has megabytes.

use weir_api::page::Page;

use super::ask::{Kind, Parameter, Query};
use super::problem::Problem;

/// Maximum number of items per page.
pub const ITEMS_MAX: u64 = 1_000;

/// Number of items per page without `limit`.
const ITEMS_DEFAULT: u64 = 100;

/// The query parameter for the maximum number of items.
pub(super) const LIMIT: Parameter = Parameter {
    name: "limit",
    kind: Kind::Number { max: ITEMS_MAX, default: ITEMS_DEFAULT },
    summary: "Most items on the page",
};

/// The query parameter for the item after which the page begins.
pub(super) const AFTER: Parameter = Parameter {
    name: "after",
    kind: Kind::Text,
    summary: "Begins after this item: `next` of the page before",
};

/// The query parameters of a list.
pub(super) const PAGE: &[Parameter] = &[LIMIT, AFTER];

/// The requested page. Only its items are built. `name`: the identifier of an item in `after`.
pub(super) fn page<S, T>(
    query: &Query,
    all: impl Iterator<Item = S>,
    name: impl Fn(&S) -> String,
    build: impl Fn(S) -> T,
) -> Result<Page<T>, Problem> {
    let mut all = all;
    if let Some(after) = query.text(AFTER.name)
        && !all.any(|item| name(&item) == after)
    {
        let detail = format_args!("there is no item `{after}` any more");
        return Err(Problem::not_found(detail).help("begin again without `after`"));
    }
    let mut items = Vec::new();
    let mut last = None;
    for item in all.by_ref().take(query.number(&LIMIT)) {
        last = Some(name(&item));
        items.push(build(item));
    }
    let next = last.filter(|_| all.next().is_some());
    Ok(Page { items, next })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages() {
        let page = |text: &str| {
            let query = Query::parse(text, PAGE).expect("a good query");
            let all = 1..=250_u32;
            let page = page(&query, all, |number| format!("n{number}"), |number| number);
            page.map(|page| (page.items.first().copied(), page.items.len(), page.next))
        };
        let next = |name: &str| Some(name.to_owned());
        assert_eq!(page("").expect("it is there"), (Some(1), 100, next("n100")));
        assert_eq!(page("after=n100").expect("it is there"), (Some(101), 100, next("n200")));
        assert_eq!(page("after=n200").expect("it is there"), (Some(201), 50, None));
        assert_eq!(page("after=n150").expect("it is there"), (Some(151), 100, None));
        assert_eq!(page("after=n250").expect("it is there"), (None, 0, None));
        assert_eq!(page("limit=1000").expect("it is there"), (Some(1), 250, None));
        assert_eq!(page("after=x").map_err(|it| it.status.as_u16()).err(), Some(404));
    }
}
