//! The points of charts over the last minutes.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use weir_api::dashboard::Point;

use super::sample::Sample;

/// Maximum number of points: four minutes.
pub(crate) const POINTS_MAX: usize = 120;

/// The points of one chart, oldest first.
pub(crate) type Points = VecDeque<Point>;

/// The points of all charts.
#[derive(Debug, Default)]
pub(crate) struct History {
    total: Points,
    servers: HashMap<Arc<str>, Points>,
}

impl History {
    /// The sum of all virtual servers.
    pub fn total(&self) -> Points {
        self.total.clone()
    }

    /// One virtual server.
    pub fn of(&self, server: &str) -> Points {
        self.servers.get(server).cloned().unwrap_or_default()
    }

    /// Adds the points of a sample, and removes charts of deleted virtual servers.
    pub fn push(&mut self, sample: &Sample) {
        let Some(total) = sample.total else { return };
        push(&mut self.total, total);
        for server in &sample.servers {
            let points = self.servers.entry(Arc::clone(&server.name)).or_default();
            match server.point {
                Some(point) => push(points, point),
                // Another virtual server with this name.
                None => points.clear(),
            }
        }
        if self.servers.len() > sample.servers.len() {
            let there: HashSet<&str> = sample.servers.iter().map(|it| &*it.name).collect();
            self.servers.retain(|name, _| there.contains(&**name));
        }
    }
}

fn push(points: &mut Points, point: Point) {
    if points.len() == POINTS_MAX {
        points.pop_front();
    }
    points.push_back(point);
}
