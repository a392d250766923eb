//! The cost of certificates by name: memory per certificate, and time of a lookup. Run by hand:
//!
//! `cargo test --release -p weir-tls --test many_certificates -- --ignored --nocapture`

use std::sync::Arc;
use std::time::Instant;

use rustls::pki_types::PrivateKeyDer;
use weir_tls::identity::Identity;
use weir_tls::managed_certificate::Credential;
use weir_tls::names::Names;
use weir_tls::server::Certificates;

/// This many different certificates with P-256 keys, each for a name and its subdomains.
fn identities(count: usize) -> Vec<Arc<Identity>> {
    (0..count)
        .map(|number| {
            let names = vec![format!("shop-{number}.example"), format!("*.shop-{number}.example")];
            let key = rcgen::KeyPair::generate().expect("a key");
            let params = rcgen::CertificateParams::new(names).expect("names");
            let certificate = params.self_signed(&key).expect("a certificate");
            let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
            Arc::new(Identity::new(vec![certificate.der().clone()], key).expect("a pair"))
        })
        .collect()
}

fn credentials(identities: Vec<Arc<Identity>>) -> Vec<Credential> {
    identities.into_iter().map(Credential::Fixed).collect()
}

/// The resident memory of this process in bytes.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[test]
fn every_name_is_in_the_table() {
    let identities = identities(20);
    let certificates = Certificates::new(&credentials(identities), false);
    assert_eq!(certificates.len(), 40);
}

#[test]
#[ignore = "measures, and has nothing to fail"]
fn what_many_certificates_cost() {
    const LOOKS: usize = 2_000_000;
    for count in [1, 100, 10_000] {
        let before = resident_bytes();
        let all = identities(count);
        let begun = Instant::now();
        let certificates = Certificates::new(&credentials(all.clone()), false);
        let made = begun.elapsed();
        let bytes = resident_bytes().saturating_sub(before) / count as u64;
        // Only the lookup, without the rest of a handshake.
        let mut names = Names::new();
        for (number, name) in all.iter().flat_map(|it| &it.names).enumerate() {
            *names.entry(name, || number) = number;
        }
        let asked: Vec<String> = (0..1_000)
            .map(|number| (number * 7_919) % count)
            .flat_map(|it| [format!("shop-{it}.example"), format!("www.shop-{it}.example")])
            .collect();
        let begun = Instant::now();
        let found = asked.iter().cycle().take(LOOKS).filter(|it| names.find(it).is_some()).count();
        let look_ns = begun.elapsed().as_nanos() / LOOKS as u128;
        assert_eq!((found, certificates.len()), (LOOKS, 2 * count));
        println!(
            "{count:>6} certificates: {bytes:>6} bytes each, table in {made:?}, look {look_ns} ns"
        );
    }
}
