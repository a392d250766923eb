//! Ordinary requests of real applications, without attacks. Texts are used in turn. All other data is random, from a fixed
//! seed.
//!
//! HTML of rich-text editors is not included: paranoia level 1 of CRS denies it as script, and sites that need it exclude
//! the field.

mod apps;
mod services;
mod texts;

use weir_testing::Random;

use crate::send::Sent;

const SEED: u64 = 14;

type Make = fn(&mut Random, usize) -> Sent;

/// The kinds of requests, with the number of each.
const KINDS: [(&str, usize, Make); 13] = [
    ("searches", 400, apps::search),
    ("log-ins", 150, apps::log_in),
    ("orders and bookings", 250, apps::order),
    ("WordPress", 300, apps::wordpress),
    ("issues and comments of a forge", 250, apps::forge),
    ("JSON APIs", 250, services::api),
    ("GraphQL", 120, services::graphql),
    ("uploads", 150, services::upload),
    ("beacons and consent cookies", 200, services::beacon),
    ("OAuth", 120, services::oauth),
    ("assets", 200, services::asset),
    ("settings and styles", 120, services::settings),
    ("searches once more", 100, apps::search),
];

/// All requests, each with its kind.
pub fn requests() -> Vec<(&'static str, Sent)> {
    let mut random = Random::new(SEED);
    let mut all = Vec::new();
    for (kind, count, make) in KINDS {
        all.extend((0..count).map(|index| (kind, make(&mut random, index))));
    }
    all
}
