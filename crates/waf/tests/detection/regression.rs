//! The attacks in CRS's regression tests. Many are fragments that test one pattern of CRS. The built-in rules were extended
//! once for attacks that they missed here, and are not tuned for the rest.

use crate::figures::{Share, denied, run_all};
use crate::ftw::{self, Stage};
use crate::send::{Sent, view};

/// Families of rules that detect attacks, by prefix of the rule id.
const FAMILIES: [&str; 9] = ["930", "931", "932", "933", "934", "941", "942", "943", "944"];

fn sent(stage: &Stage) -> Sent {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let request = &stage.request;
    let method = match request.method.as_slice() {
        b"POST" => "POST",
        b"PUT" => "PUT",
        _ => "GET",
    };
    Sent {
        method,
        target: request.target.clone(),
        headers: request.headers.iter().map(|(name, value)| (text(name), text(value))).collect(),
        body: request.body.clone(),
    }
}

#[test]
fn attacks_of_the_regression_tests_are_found() {
    let (Some(crs), Some(tests)) = (crate::data::rules(), crate::data::tests()) else { return };
    let is_attack = |stage: &Stage| {
        !stage.expect.ids.is_empty() && FAMILIES.iter().any(|it| stage.name.starts_with(it))
    };
    let requests: Vec<Sent> =
        ftw::read(&tests).iter().filter(|it| is_attack(it)).map(sent).collect();
    let own = crate::builtin();
    let share = |rules, level| -> Share {
        let settings = [("blocking_paranoia_level", level)];
        denied(&run_all(&view(rules, &settings), &requests))
    };
    let shares = [share(&own, "1"), share(&own, "2"), share(&crs, "1"), share(&crs, "2")];
    println!("\nattacks among CRS's regression tests denied:");
    for (name, share) in
        ["built-in, level 1", "built-in, level 2", "CRS 4, level 1", "CRS 4, level 2"]
            .iter()
            .zip(shares)
    {
        println!("  {name}: {share}");
    }
    let percents = shares.map(Share::percent);
    assert!(percents[0] > 30.0 && percents[1] > 50.0, "{percents:?}");
    assert!(percents[2] > 65.0 && percents[3] > 85.0, "{percents:?}");
}
