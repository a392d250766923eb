//! Findings about virtual servers: their addresses, and their HTTP settings.

use super::*;

#[test]
fn how_paths_are_taken() {
    check_server(
        "http: { path: raw }",
        &[
            "error 5:19 `virtual_servers.a.http.path` must be `keep` or a map with `repeated_slashes`, \
             `encoded_slashes`, `backslashes`, `parameters`, `nul`, found the text \"raw\" -> -",
        ],
    );
    check_server(
        "http: { path: kepp }",
        &[
            "error 5:19 `virtual_servers.a.http.path` must be `keep` or a map with `repeated_slashes`, \
             `encoded_slashes`, `backslashes`, `parameters`, `nul`, found the text \"kepp\" -> \
             did you mean `keep`?",
        ],
    );
    check_server(
        "http: { path: { encoded_slashes: refused, slashes: merge } }",
        &[
            "error 5:38 `virtual_servers.a.http.path.encoded_slashes` must be `refuse`, `decode` or `keep`, \
             found the text \"refused\" -> did you mean `refuse`?",
            "error 5:47 unknown key `slashes` in `virtual_servers.a.http.path` -> known keys: \
             `repeated_slashes`, `encoded_slashes`, `backslashes`, `parameters`, `nul`",
        ],
    );
    for (path, findings) in [
        ("{ parameters: remove }", 1),
        ("{ parameters: refuse }", 1),
        ("{ parameters: keep }", 0),
        ("keep", 0),
    ] {
        let warning = "warning 5:18 persistence by a path parameter, which `http.path.parameters` removes or refuses -> set `parameters: keep`, or use another \
                       persistence";
        let http = format!("http: {{ path: {path} }}");
        let lines = format!("persistence: {{ type: path_parameter, name: id }}\n    {http}");
        check_server(&lines, &[warning][..findings]);
    }
}

#[test]
fn words_of_trailers() {
    check_server(
        "http: { request_trailers: forwards }",
        &[
            "error 5:31 `virtual_servers.a.http.request_trailers` must be `drop` or `forward`, found the \
           text \"forwards\" -> did you mean `forward`?",
        ],
    );
}

#[test]
fn listeners() {
    check(
        &sound("", "").replace("listen: 127.0.0.1:80", "listen: :80"),
        &["error 3:13 `virtual_servers.a.listen` must be an address to listen on (`ip:port`, `ip:port-port`, \
           `[v6]:port` or `unix:/path`), or a list of them, found the text \":80\" -> \
           for all addresses write 0.0.0.0:80 or \"[::]:80\", with fast_l4 0.0.0.0/0:80"]
        .map(|text| text.replace(", or a list of them", ""))
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>(),
    );
    check(
        &sound("", "")
            .replace("listen: 127.0.0.1:80", "listen: [ 127.0.0.1:80, \"[::ffff:127.0.0.1]:80\" ]"),
        &["error 3:29 `127.0.0.1:80` is used twice: in line 3 by virtual server `a` -> \
           give each listener its own address or port"],
    );
    for (listen, other, place) in [
        ("[ 127.0.0.1:80, 0.0.0.0:80 ]", "`0.0.0.0:80` and `127.0.0.1:80`", "3:29"),
        ("[ 0.0.0.0:80, 127.0.0.1:80 ]", "`127.0.0.1:80` and `0.0.0.0:80`", "3:27"),
    ] {
        check(
            &sound("", "").replace("127.0.0.1:80\n", &format!("{listen}\n")),
            &[&format!(
                "error {place} {other} of virtual server `a` in line 3 overlap: `0.0.0.0:80` takes its \
                 port on every address -> keep one of them, or give one another port"
            )],
        );
    }
    check(
        &sound("", "").replace("127.0.0.1:80\n", "[ 0.0.0.0:80, \"[::]:80\", 127.0.0.1:81 ]\n"),
        &[],
    );
    check(
        &sound("", "").replace("listen: 127.0.0.1:80", "listen: 127.0.0.1:0"),
        &[
            "warning 3:13 port 0 of virtual server `a`: the system picks another port at each start \
           -> give a port, unless this is a test",
        ],
    );
    check(
        &sound("", "").replace("listen: 127.0.0.1:80", "listen: localhost:80"),
        &[
            "error 3:13 `virtual_servers.a.listen` must be an address to listen on (`ip:port`, `ip:port-port`, \
           `[v6]:port` or `unix:/path`), found the text \"localhost:80\" -> \
           write 127.0.0.1:80 or \"[::1]:80\"",
        ],
    );
    check(
        &sound("", "").replace("listen: 127.0.0.1:80", "listen: 80"),
        &[
            "error 3:13 `virtual_servers.a.listen` must be an address to listen on (`ip:port`, `ip:port-port`, \
           `[v6]:port` or `unix:/path`), found the number 80 -> \
           for all addresses write 0.0.0.0:80 or \"[::]:80\", with fast_l4 0.0.0.0/0:80",
        ],
    );
    check(
        &sound("", "").replace("listen: 127.0.0.1:80", "listen: []"),
        &["error 3:13 `virtual_servers.a.listen` is empty; it needs at least one item -> -"],
    );
    check(
        &sound("", "").replace("127.0.0.1:80\n", "0.0.0.0:9001\n"),
        &[
            "error 3:13 virtual server `a` listens on `0.0.0.0:9001`, which a member of its pool `p` \
           has: requests would go round for ever -> change the listener's or the member's port",
        ],
    );
}
