//! Signatures per CPU second of weir's TLS library: the upper bound of full handshakes.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use rustls::SignatureScheme;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;

use crate::catalogue::SIGNATURES;
use crate::load::{LoadOutcome, Window};
use crate::pinning::pin_thread;
use crate::record::{Cost, Counts, Point};

/// The length of the signed content in TLS 1.3: 64 spaces, a context, a hash (RFC 8446 section 4.4.3).
const MESSAGE_BYTES: usize = 64 + 34 + 48;
/// The signature schemes that the clients of a run negotiate, one for each kind of key.
const SCHEMES: [SignatureScheme; 2] =
    [SignatureScheme::ECDSA_NISTP256_SHA256, SignatureScheme::RSA_PSS_SHA256];
/// Signatures between two readings of the clock.
const BATCH: u64 = 8;

/// The measured signatures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignatureCount {
    /// Number of signatures.
    pub count: u64,
    /// Elapsed time.
    pub elapsed_s: f64,
    /// CPU time of the signing thread.
    pub cpu_s: f64,
}

/// Signs with the key in the PEM file `key` for `time`, on the first of `cores`. Signs at least one batch.
pub fn measure(key: &Path, cores: &[usize], time: Duration) -> Result<SignatureCount, String> {
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| error.to_string())?;
    std::thread::scope(|scope| {
        // Pinning changes the thread for good, so signing has a thread of its own.
        let signing = scope.spawn(|| {
            pin_thread(cores, 0)
                .map_err(|error| format!("core {}: {}", error.core, error.source))?;
            sign(&key, time)
        });
        signing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn sign(key: &PrivateKeyDer<'_>, time: Duration) -> Result<SignatureCount, String> {
    let key = any_supported_type(key).map_err(|error| error.to_string())?;
    let signer = key.choose_scheme(&SCHEMES).ok_or("no scheme for that key")?;
    let mut message = [b' '; MESSAGE_BYTES];
    let (began, before_s) = (Instant::now(), cpu_s());
    let mut count = 0_u64;
    while began.elapsed() < time || count == 0 {
        for _ in 0..BATCH {
            message[..8].copy_from_slice(&count.to_le_bytes());
            signer.sign(&message).map_err(|error| error.to_string())?;
            count += 1;
        }
    }
    Ok(SignatureCount {
        count,
        elapsed_s: began.elapsed().as_secs_f64(),
        cpu_s: cpu_s() - before_s,
    })
}

/// CPU time of the calling thread.
fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

impl SignatureCount {
    /// The point of a product that only signs. Each signature counts as one request.
    pub fn point(self, round: u32, at: f64) -> Point {
        let Self { count, elapsed_s, cpu_s } = self;
        Point {
            product: SIGNATURES.into(),
            round,
            at,
            load: LoadOutcome {
                requests: count,
                requests_per_second: count as f64 / elapsed_s,
                window: Some(Window { elapsed_s, requests: count, bytes: 0 }),
                elapsed_s,
                ..LoadOutcome::default()
            },
            cost: Cost {
                elapsed_s,
                busy_s: cpu_s,
                resting_share: 0.0,
                cores: 1,
                process_s: cpu_s,
                resident_bytes: 0,
                joules: None,
                origin_s: None,
                load_busy_s: None,
                direct_s_per_request: None,
                unguarded_s_per_request: None,
                workers_s: None,
            },
            counts: Counts::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Figure;
    use crate::run::certificates::{Certificates, Key};

    #[test]
    fn both_kinds_of_key_sign() {
        let folder = tempfile::tempdir().expect("a folder");
        let certificates = Certificates::make(folder.path()).expect("certificates");
        for key in [Key::Rsa2048, Key::P256] {
            let time = Duration::from_millis(20);
            let signed = measure(&certificates.of(key).key, &[], time).expect("signatures");
            assert!(signed.count >= BATCH && signed.elapsed_s >= 0.02, "{key:?}: {signed:?}");
            let point = signed.point(2, 1.0);
            let rate = Figure::HandshakesPerCpuSecond.of(&point).expect("a rate");
            assert!((rate * signed.cpu_s / signed.count as f64 - 1.0).abs() < 1e-6, "{key:?}");
        }
        let chain = &certificates.of(Key::P256).chain;
        assert!(measure(chain, &[], Duration::ZERO).is_err());
    }
}
