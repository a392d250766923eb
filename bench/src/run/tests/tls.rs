//! Handshakes in a closed loop: full ones, compared with the bare signatures of weir's TLS library, and resumed ones.

use super::{plain_scene, workload};
use crate::catalogue::{RESUMED_CASES, SIGNATURES, SSL_CASES};
use crate::record::TestRecord;
use crate::run::certificates::Key;
use crate::run::extent::Budget;
use crate::run::https::{TlsLoad, Version};
use crate::run::lineup::Scene;
use crate::run::products::Front;
use crate::run::rotation::{Judge, Stop, omit};
use crate::run::session::Session;
use crate::run::signatures;
use crate::run::workload::Workload;

const BODY_BYTES: u64 = 128;

/// In the order of [`SSL_CASES`].
const FULL: [(Version, Key); 4] = [
    (Version::Tls13, Key::Rsa2048),
    (Version::Tls12, Key::Rsa2048),
    (Version::Tls13, Key::P256),
    (Version::Tls12, Key::P256),
];
const _: () = assert!(FULL.len() == SSL_CASES.len());
/// In the order of [`RESUMED_CASES`]. Resumed handshakes need no signature.
const RESUMED: [(Version, Key); 2] = [(Version::Tls13, Key::P256), (Version::Tls12, Key::P256)];
const _: () = assert!(RESUMED.len() == RESUMED_CASES.len());

/// Whether the test has a row for bare signatures.
pub fn is_beside_signatures(test: &str) -> bool {
    test == "ssl-tps"
}

pub(super) fn run(
    session: &mut Session<'_>,
    test: &'static str,
    budget: &Budget,
    record: &mut TestRecord,
) -> Result<(), Stop> {
    let resume = !is_beside_signatures(test);
    let (cases, names) =
        if resume { (&RESUMED[..], RESUMED_CASES) } else { (&FULL[..], SSL_CASES) };
    let users = session.users();
    for &at in budget.settings {
        let (version, key) = cases[at as usize];
        let name = format!("{test}-{}", key.name());
        let front = Front::secure(key);
        let scene = Scene { front, yardstick: None, ..plain_scene(&name, budget, users) };
        let mut live = session.open(test, scene, Some(at), record)?;
        let workload = Workload {
            requests_per_connection: Some(1),
            tls: Some(TlsLoad { version, key, resume }),
            ..workload(budget, BODY_BYTES, users)
        };
        for round in 0..budget.rounds {
            let label = names[at as usize].to_owned();
            let setting = live.setting(at, label, Judge::AnyRate, &workload);
            live.rotate_once(setting, round, budget, record)?;
            if !resume {
                sign(live.session, key, (round, at), &workload, record);
            }
        }
    }
    Ok(())
}

/// Adds the row of bare signatures, measured for as long as a product.
fn sign(
    session: &Session<'_>,
    key: Key,
    (round, at): (u32, f64),
    workload: &Workload,
    record: &mut TestRecord,
) {
    let file = &session.certificates.of(key).key;
    match signatures::measure(file, &session.bed.cores.product, workload.measure) {
        Ok(signed) => record.points.push(signed.point(round, at)),
        Err(reason) => omit(record, SIGNATURES, Some(at), reason),
    }
}
