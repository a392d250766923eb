//! The dashboard: embedded files, which any client of a listener over TCP can load.
//!
//! The files contain no data: the page reads the API with the rights of its user. `Content-Security-Policy` forbids
//! content of other origins and injected scripts.

use axum::Router;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_FRAME_OPTIONS};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::Context;

/// Allows loading only from the page's own listener, and forbids embedding in other pages.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// A file of the dashboard.
struct File {
    path: &'static str,
    media_type: &'static str,
    contents: &'static str,
}

macro_rules! files {
    ($($path:literal: $media_type:expr, $file:literal;)*) => {
        [$(File {
            path: $path,
            media_type: $media_type,
            contents: include_str!(concat!("../../dashboard/", $file)),
        }),*]
    };
}

static FILES: [File; 19] = files! {
    "/": HTML, "index.html";
    "/dashboard/api.js": JAVASCRIPT, "api.js";
    "/dashboard/chart.js": JAVASCRIPT, "chart.js";
    "/dashboard/dialogs.js": JAVASCRIPT, "dialogs.js";
    "/dashboard/dom.js": JAVASCRIPT, "dom.js";
    "/dashboard/icon.svg": SVG, "icon.svg";
    "/dashboard/main.js": JAVASCRIPT, "main.js";
    "/dashboard/parts.js": JAVASCRIPT, "parts.js";
    "/dashboard/state.js": JAVASCRIPT, "state.js";
    "/dashboard/style.css": CSS, "style.css";
    "/dashboard/views/certificates.js": JAVASCRIPT, "views/certificates.js";
    "/dashboard/views/configuration.js": JAVASCRIPT, "views/configuration.js";
    "/dashboard/views/explain.js": JAVASCRIPT, "views/explain.js";
    "/dashboard/views/map.js": JAVASCRIPT, "views/map.js";
    "/dashboard/views/overview.js": JAVASCRIPT, "views/overview.js";
    "/dashboard/views/policies.js": JAVASCRIPT, "views/policies.js";
    "/dashboard/views/pools.js": JAVASCRIPT, "views/pools.js";
    "/dashboard/views/servers.js": JAVASCRIPT, "views/servers.js";
    "/dashboard/words.js": JAVASCRIPT, "words.js";
};

/// The routes of all files.
pub(super) fn routes() -> Router<Context> {
    FILES
        .iter()
        .fold(Router::new(), |router, file| router.route(file.path, get(async || answer(file))))
}

fn answer(file: &File) -> Response {
    let headers = [
        (CONTENT_TYPE, file.media_type),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (X_FRAME_OPTIONS, "DENY"),
    ];
    (headers, file.contents).into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::*;

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboard")
    }

    fn names(folder: &Path, below: &str, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).expect("the folder of the dashboard") {
            let entry = entry.expect("an entry");
            let name = format!("{below}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                names(&entry.path(), &format!("{name}/"), found);
            } else {
                found.insert(name);
            }
        }
    }

    #[test]
    fn all_files_are_served() {
        let mut found = BTreeSet::new();
        names(&folder(), "", &mut found);
        let served = FILES.iter().map(|file| match file.path {
            "/" => "index.html".to_owned(),
            path => path.trim_start_matches("/dashboard/").to_owned(),
        });
        assert_eq!(found, served.collect());
    }

    /// All files that the page and its modules refer to are served.
    #[test]
    fn nothing_is_missing_or_from_elsewhere() {
        let is_served = |path: &str| FILES.iter().any(|file| file.path == path);
        for file in &FILES {
            for line in file.contents.lines().filter(|line| line.starts_with("import ")) {
                let name = line.split('"').nth(1).expect("a module");
                let base = file.path.rsplit_once('/').expect("a folder").0;
                let path = match name.strip_prefix("../") {
                    Some(name) => format!("/dashboard/{name}"),
                    None => format!("{base}/{}", name.trim_start_matches("./")),
                };
                assert!(is_served(&path), "{}: {name}", file.path);
            }
            let elsewhere = ["http:", "https:", "//cdn"];
            // An XML name space, and an example.
            let allowed = ["http://www.w3.org/2000/svg", "https://shop.example/"];
            let text =
                allowed.iter().fold(file.contents.to_owned(), |text, it| text.replace(it, ""));
            assert!(!elsewhere.iter().any(|it| text.contains(it)), "{}", file.path);
        }
        let page = FILES[0].contents;
        let named = page.split('"').filter(|word| word.starts_with("dashboard/"));
        assert!(named.clone().count() >= 3);
        named.for_each(|word| assert!(is_served(&format!("/{word}")), "{word}"));
    }
}
