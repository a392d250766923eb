//! Random requests.

use std::net::IpAddr;

use weir_core::persistence::cookie::OtherTokens;
use weir_exchange::shared::live::LiveTable;
use weir_exchange::shared::sticky::Sticky;
use weir_explain::Asked;
use weir_testing::Random;

use crate::configuration::{HOSTS, PATHS, SERVERS};

/// A request.
pub fn draw(live: &LiveTable, random: &mut Random) -> Asked {
    let path = PATHS[random.below(PATHS.len())];
    let query = ["", "", "?s=ab", "?q=attack", "?s=cd&q=x"][random.below(5)];
    let parameter = ["", "", "", ";jsessionid=abcdef"][random.below(4)];
    let port = 8_000 + random.below(SERVERS);
    let mut headers = Vec::new();
    if random.percent(50) {
        headers.push(format!("X-User: {}", ["ann", "bob", "eve"][random.below(3)]));
    }
    if random.percent(30) {
        headers.push("Cookie: SID=0123456789; theme=dark".into());
    }
    if random.percent(40) {
        headers.extend(own_cookie(live, port, random));
    }
    if random.percent(20) {
        headers.push("User-Agent: bad".into());
    }
    if random.percent(20) {
        headers.push("X-Forwarded-For: 10.1.2.3, 10.9.0.1".into());
    }
    headers.push(format!("Host: {}", HOSTS[random.below(HOSTS.len())]));
    let body = random.percent(20).then(|| ["a=b", "a=attack"][random.below(2)].to_owned());
    if body.is_some() {
        headers.push("Content-Type: application/x-www-form-urlencoded".into());
    }
    let from = [[10, 1, 0, 1], [10, 9, 0, 2], [192, 0, 2, 1], [192, 0, 3, 1]];
    Asked {
        url: format!("http://127.0.0.1:{port}{path}{parameter}{query}"),
        method: random.percent(10).then(|| "PUT".into()),
        headers,
        body,
        from: Some(IpAddr::from(from[random.below(from.len())])),
        http2: random.percent(20),
        virtual_server: None,
    }
}

/// A cookie of weir's own, which keeps the client at some member of some pool.
fn own_cookie(live: &LiveTable, port: usize, random: &mut Random) -> Option<String> {
    let server = &live.snapshot.virtual_servers[port - 8_000];
    let pool = random.below(live.snapshot.pools.len());
    let settings = &live.snapshot.pools[pool];
    let found = live.snapshot.persistence.iter();
    let mut found = found.filter_map(|it| live.stickies.of(server, it, settings));
    let sticky = found.find(|it| matches!(***it, Sticky::Insert(_)))?;
    let Sticky::Insert(insert) = &**sticky else { return None };
    let mut field = Vec::new();
    let member = random.below(settings.members.len()) as u32;
    insert.write_field(member, false, &OtherTokens::default(), &mut field);
    let field = String::from_utf8(field).expect("text");
    Some(format!("Cookie: {}", field.split(';').next()?))
}
