//! The cookies of a user agent.

use std::net::SocketAddr;

use crate::client::{Client, Response};

/// Cookies by name. Paths, domains and expiry are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Jar {
    cookies: Vec<(String, String)>,
}

impl Jar {
    /// Requests a path on a new connection with all cookies. Stores the cookies of the response.
    #[track_caller]
    pub fn get(&mut self, address: SocketAddr, path: &str) -> Response {
        let mut client = Client::connect(address);
        let cookie = match self.cookies.is_empty() {
            true => String::new(),
            false => format!("Cookie: {}\r\n", self.field()),
        };
        client.send(format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\n{cookie}\r\n"));
        let response = client.response();
        response.assert_status(200);
        for field in response.head.all("set-cookie") {
            let cookie = field.split(';').next().unwrap_or_default();
            let (name, value) = cookie.split_once('=').expect("name and value");
            self.set(name, value);
        }
        response
    }

    /// Stores a cookie of this name with this value.
    pub fn set(&mut self, name: &str, value: &str) {
        match self.cookies.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => value.clone_into(old),
            None => self.cookies.push((name.to_owned(), value.to_owned())),
        }
    }

    /// The value of a Cookie header with all cookies.
    pub fn field(&self) -> String {
        let cookies = self.cookies.iter().map(|(name, value)| format!("{name}={value}"));
        cookies.collect::<Vec<_>>().join("; ")
    }

    /// The value of the only cookie, which must have this name.
    #[track_caller]
    pub fn only(&self, name: &str) -> &str {
        match &self.cookies[..] {
            [(only, value)] if only == name => value,
            others => panic!("not {name} alone: {others:?}"),
        }
    }
}
