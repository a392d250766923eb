//! Fields that members take from weir alone, while addresses of names change.

use std::net::Ipv4Addr;

use super::*;

/// A member at all addresses of this host, which answers every request with its head.
async fn mirror() -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = [0; 1_024];
                let length = stream.read(&mut head).await.unwrap_or(0);
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{}",
                    String::from_utf8_lossy(&head[..length])
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    port
}

/// Whether a field of a client that says who its user is reaches the member.
async fn is_believed(listen: u16) -> bool {
    let mut stream = TcpStream::connect(socket(listen)).await.unwrap();
    let request = "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nX-User: root\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    answer.contains("X-User: root")
}

/// A member of an open pool gets a login's fields from weir alone as soon as a name of the login's pool leads to it.
#[tokio::test]
async fn a_name_that_leads_to_a_member_of_another_pool_withholds_fields_there() {
    let server = crate::names::tests::Server::start().await;
    let (events, _) = Captured::new();
    let files = Files::new("withheld");
    let (port, asks, open) = (mirror().await, free_port(), free_port());
    let [first, second] = [Ipv4Addr::new(127, 0, 0, 5), Ipv4Addr::new(127, 0, 0, 6)];
    let file = files.config(&format!(
        "log: {{ access: {{ format: \"off\" }} }}\n\
         authentication: {{ portal: {{ type: external, pool: portal, add_headers: [ X-User ] }} }}\n\
         virtual_servers:\n  asks: {{ listen: 127.0.0.1:{asks}, pool: app, authenticate: portal }}\n  \
         open: {{ listen: 127.0.0.1:{open}, pool: open }}\n\
         pools:\n  portal: {{ members: [ 127.0.0.1:{port} ] }}\n  \
         app: {{ members: [ app.test:{port} ] }}\n  open: {{ members: [ {second}:{port} ] }}\n"
    ));
    server.resolve_for_now("app.test", first.into());
    let servers = NameServers::Udp(server.address);
    let mut supervisor = Supervisor::start(&file, servers, events.clone()).await.unwrap();
    assert!(is_believed(open).await, "it is a member of no pool with a login");
    server.resolve_for_now("app.test", second.into());
    let changed = async {
        while !supervisor.apply_names() {
            supervisor.names.changed().await;
        }
    };
    tokio::time::timeout(PATIENCE, changed).await.expect("the name has another address");
    supervisor.wait().await;
    let pools = &supervisor.table.snapshot.pools;
    let app = pools.iter().find(|pool| *pool.name == *"app").expect("a pool");
    assert_eq!(*app.members[0].label, format!("{second}:{port}"));
    // A worker takes the table a moment later.
    let withheld = async { while is_believed(open).await {} };
    tokio::time::timeout(PATIENCE, withheld).await.expect("fields are withheld at the open pool");
    supervisor.stop().await;
    supervisor.finish();
}
