//! Readings of a running weir. A separate thread takes them, so a late answer does not stop the view.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use weir_api::status::Status;

use super::histograms::{HISTOGRAMS, Histograms};
use crate::admin::client::Client;
use crate::admin::error::Error;

/// One reading.
#[derive(Debug)]
pub struct Sample {
    /// When the request for it was sent.
    pub at: Instant,
    /// The status document.
    pub status: Status,
    /// Latency histograms.
    pub histograms: Arc<Histograms>,
}

/// A reading, or an error message.
pub type SampleResult = Result<Arc<Sample>, String>;

/// Takes one reading.
pub fn take(client: &Client) -> Result<Sample, Error> {
    let at = Instant::now();
    let status = client.read(&client.get("/v1/status")?)?;
    let mut histograms = Histograms::default();
    for family in HISTOGRAMS {
        let metrics = client.get(&format!("/metrics?name={family}"))?;
        histograms.add(&String::from_utf8_lossy(&metrics));
    }
    Ok(Sample { at, status, histograms: Arc::new(histograms) })
}

/// Starts a thread that takes readings; it ends when the receiver is dropped.
pub fn follow(client: Client, interval: Duration) -> io::Result<Receiver<SampleResult>> {
    let (to_view, samples) = sync_channel(1);
    let work = move || ask(&client, interval, &to_view);
    thread::Builder::new().name("weir-top-reader".into()).spawn(work)?;
    Ok(samples)
}

fn ask(client: &Client, interval: Duration, to_view: &SyncSender<SampleResult>) {
    loop {
        let began = Instant::now();
        let read = take(client).map(Arc::new).map_err(|error| error.to_string());
        if to_view.send(read).is_err() {
            return;
        }
        // A reading of thousands of members takes long: weir and this process rest at least as long.
        let took = began.elapsed();
        thread::sleep(interval.saturating_sub(took).max(took));
    }
}
