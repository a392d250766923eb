//! Memory of held bodies goes back to the system.

use std::net::{IpAddr, Ipv4Addr};

use weir_tests::client::Client;
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::{STEP_TIMEOUT, eventually};

/// Number of uploads that are held at the same time, and their size. Such buffers are in the heap of the worker, not in
/// mappings of their own.
const UPLOADS: u32 = 400;
const UPLOAD_BYTES: usize = 200_000;
/// Uploads of one client: a client has a limit of its own.
const OF_ONE_CLIENT: u32 = 50;
/// The end of a body, which is sent when all are held.
const END: &str = "\r\n--B--\r\n";

#[test]
fn held_bodies_leave_no_memory_behind() {
    let member = Member::named("member");
    let workers = "data_plane: { workers: 1 }";
    let setup = Setup::new(&[member.address()]).virtual_server("waf: { mode: block }").top(workers);
    let mut proxy = Proxy::start(&setup);
    let address = proxy.address();
    proxy.client().get("/").assert_status(200);
    let before = proxy.process().resident_bytes();

    let start = "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x.jpg\"\r\n\
                 Content-Type: image/jpeg\r\n\r\n";
    let file = "\u{1}\u{2}".repeat(UPLOAD_BYTES / 2);
    let length = start.len() + file.len() + END.len();
    let head = format!(
        "POST /upload HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: test\r\nAccept: */*\r\n\
         Content-Type: multipart/form-data; boundary=B\r\nContent-Length: {length}\r\n\r\n"
    );
    let mut uploads: Vec<Client> = (0..UPLOADS)
        .map(|number| {
            let client = Ipv4Addr::new(127, 0, 1, 1 + (number / OF_ONE_CLIENT) as u8);
            let mut client = Client::connect_from(address, IpAddr::V4(client));
            client.send(&head).send(start);
            client
        })
        .collect();
    // Piece by piece in turn, so that the bodies grow beside each other.
    for piece in file.as_bytes().chunks(UPLOAD_BYTES / 4) {
        for client in &mut uploads {
            client.send(piece);
        }
    }
    let held = f64::from(UPLOADS) * UPLOAD_BYTES as f64;
    eventually("all are held", STEP_TIMEOUT, || proxy.metric("weir_waf_held_bytes", &[]) >= held);
    let peak = proxy.process().resident_bytes();
    assert!(peak - before >= held as u64, "{before} {peak}");
    // What is allocated behind the bodies and stays must not keep their memory.
    let mut idle: Vec<Client> = (0..100).map(|_| Client::connect(address)).collect();
    for client in &mut idle {
        client.get("/").assert_status(200);
    }
    for client in &mut uploads {
        client.send(END);
        client.response().assert_status(200);
    }
    assert_eq!(proxy.metric("weir_waf_held_bytes", &[]), 0.0);
    let mut after = 0;
    eventually("the memory is back", STEP_TIMEOUT, || {
        after = proxy.process().resident_bytes();
        after - before.min(after) <= (peak - before) / 3
    });
    for client in &mut idle {
        client.get("/").assert_status(200);
    }
}
