//! Random requests.

use std::net::IpAddr;

use weir_api::asked::Asked;
use weir_core::persistence::cookie::OtherTokens;
use weir_exchange::shared::live::LiveTable;
use weir_exchange::shared::sticky::Sticky;
use weir_testing::Random;
use weir_testing::configurations::{self, Request};

use crate::configuration::port;

/// A request.
pub fn draw(live: &LiveTable, servers: usize, random: &mut Random) -> Asked {
    let server = random.below(servers);
    let cookie = own_cookie(live, server, random);
    let request = configurations::request(cookie, random);
    let Request { path, query, .. } = &request;
    Asked {
        url: format!("http://127.0.0.1:{}{path}{query}", port(server)),
        method: request.method.map(str::to_owned),
        headers: request.headers,
        body: request.body.map(str::to_owned),
        from: Some(IpAddr::from(request.from)),
        http2: request.is_http2,
        virtual_server: None,
    }
}

/// A cookie of weir's own, which keeps the client at some member of some pool.
fn own_cookie(live: &LiveTable, server: usize, random: &mut Random) -> Option<String> {
    let name = format!("v{server}");
    let mut servers = live.snapshot.virtual_servers.iter();
    let server = servers.find(|server| *server.name == *name)?;
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
    Some(field.split(';').next()?.to_owned())
}
