//! Files with contents that expire: authorities, revocation lists, OCSP responses, keys of tokens.

use weir_api::files::DatedFile;
use weir_config::snapshot::{self, Snapshot};

use super::certificates::{date, now_unix_s};

/// The files of a configuration.
pub(super) fn of(snapshot: &Snapshot) -> Vec<DatedFile> {
    let now = now_unix_s();
    let shown = |file: &snapshot::DatedFile| DatedFile {
        file: file.path.to_string(),
        kind: file.kind.as_str().to_owned(),
        name: file.name.to_string(),
        not_after: date(file.until_unix_s),
        days_left: file.days_left(now),
        told: file.told(now),
        is_due: file.is_due(now),
    };
    snapshot.dated.iter().map(shown).collect()
}

/// The files that no longer serve their purpose, in words with a remedy.
pub(crate) fn expired(snapshot: &Snapshot) -> Vec<String> {
    let now = now_unix_s();
    let over = snapshot.dated.iter().filter(|file| file.is_over(now));
    over.map(|file| format!("{}: {}", file.told(now), file.kind.help())).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use weir_config::snapshot::{DatedFile, DatedKind};

    use super::*;
    use crate::problems::problems;
    use crate::testing::{observed_of, pool, snapshot};

    #[test]
    fn what_has_expired_is_a_problem_and_the_rest_is_listed() {
        let file = |path: &str, kind, until_unix_s| DatedFile {
            path: path.into(),
            kind,
            name: "CN=root".into(),
            until_unix_s,
            last_until_unix_s: i64::MAX,
        };
        let mut snapshot = (*snapshot(vec![pool("web", &[], &[])])).clone();
        let soon = now_unix_s() + 3 * 24 * 60 * 60 + 60;
        snapshot.dated = Arc::from([
            file("list.pem", DatedKind::RevocationList, 86_400),
            file("soon.pem", DatedKind::RevocationList, soon),
            // One of several authorities has expired.
            file("ca.pem", DatedKind::Authority, 86_400),
        ]);
        let shown = of(&snapshot);
        let shown: Vec<_> = shown.iter().map(|it| (&*it.file, &*it.kind, it.is_due)).collect();
        assert_eq!(
            shown,
            [
                ("list.pem", "revocation_list", true),
                ("soon.pem", "revocation_list", true),
                ("ca.pem", "authority", true),
            ]
        );
        assert_eq!(of(&snapshot)[1].days_left, 3);
        assert_eq!(of(&snapshot)[0].not_after, "1970-01-02T00:00:00.000Z");
        let observed = observed_of(Arc::new(snapshot), 1);
        let told = problems(&observed, &observed.judge());
        let of_files: Vec<&String> = told.iter().filter(|it| it.contains(".pem: ")).collect();
        assert_eq!(of_files.len(), 1, "{told:?}");
        let start = "list.pem: the revocation list (CRL) of CN=root has expired ";
        assert!(of_files[0].starts_with(start), "{told:?}");
        let text = crate::metrics::encode(&observed, "weir_file_");
        let sample = "weir_file_expiry_timestamp_seconds{file=\"list.pem\",kind=\"revocation_list\"} 86400\n";
        assert!(text.contains(sample), "{text}");
    }
}
