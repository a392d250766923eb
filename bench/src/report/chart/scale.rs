//! Maps values to positions on the canvas, and calculates ticks.

use crate::report::text;

/// The spacing of values on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Linear.
    Linear,
    /// Logarithmic.
    Log,
    /// Percentiles by the logarithm of 1/(1-p): the distances between 90, 99 and 99.9 are equal.
    Nines,
}

/// One axis.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    kind: Kind,
    /// Ends of the axis, after [`warp`].
    low: f64,
    high: f64,
    /// Positions of the ends on the canvas.
    from: f64,
    to: f64,
}

/// A mark on an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// The value.
    pub value: f64,
    /// The label. A tick without a label is only a faint line.
    pub label: Option<String>,
}

/// The largest percentile that [`Kind::Nines`] distinguishes.
const PERCENTILE_MAX: f64 = 99.9999;

/// Values with a larger ratio than this get a logarithmic axis.
const LOG_RATIO_MIN: f64 = 7.0;

fn warp(kind: Kind, value: f64) -> f64 {
    match kind {
        Kind::Linear => value,
        Kind::Log => value.max(f64::MIN_POSITIVE).log10(),
        Kind::Nines => -(1.0 - value.clamp(0.0, PERCENTILE_MAX) / 100.0).log10(),
    }
}

impl Kind {
    /// Linear, or logarithmic if the range of the values needs it.
    pub fn fitting(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = positive_range(values);
        if high / low > LOG_RATIO_MIN { Self::Log } else { Self::Linear }
    }
}

/// The smallest and the largest positive value; 1 and 1 without any.
fn positive_range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let range = values
        .filter(|value| value.is_finite() && *value > 0.0)
        .fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
    if range.0.is_finite() { range } else { (1.0, 1.0) }
}

impl Scale {
    /// An axis that contains all these values with some margin, between two positions on the canvas. A linear axis
    /// begins at 0, so that twice the length is twice the value.
    pub fn around(kind: Kind, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let (low, high) = positive_range(values);
        let (low, high) = match kind {
            Kind::Linear => (0.0, high * 1.06),
            Kind::Log => {
                let (low, high) = (low.log10(), high.log10());
                let room = ((high - low) * 0.06).max(0.04);
                (low - room, high + room)
            }
            Kind::Nines => (warp(kind, low) - 0.06, warp(kind, high) + 0.06),
        };
        Self { kind, low, high, from, to }
    }

    /// An axis with exactly these ends.
    pub fn between(kind: Kind, low: f64, high: f64, from: f64, to: f64) -> Self {
        let (low, high) = (warp(kind, low), warp(kind, high));
        Self { kind, low, high: if high > low { high } else { low + 1.0 }, from, to }
    }

    /// The position of a value. Values beyond the axis get the position of its end.
    pub fn at(&self, value: f64) -> f64 {
        let share = (warp(self.kind, value) - self.low) / (self.high - self.low);
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        self.from + share * (self.to - self.from)
    }

    /// Whether the axis contains a value.
    pub fn holds(&self, value: f64) -> bool {
        let value = warp(self.kind, value);
        value >= self.low - 1e-9 && value <= self.high + 1e-9
    }

    /// Whether the axis is logarithmic.
    pub fn is_log(&self) -> bool {
        self.kind == Kind::Log
    }

    /// Whether the axis is linear.
    pub fn is_linear(&self) -> bool {
        self.kind == Kind::Linear
    }

    /// Ticks at round values, with labels if there is space. `room` is the space that a label needs.
    pub fn ticks(&self, room: impl Fn(&str) -> f64) -> Vec<Tick> {
        let ticks = match self.kind {
            Kind::Linear => self.linear_ticks(),
            Kind::Log => self.log_ticks(),
            Kind::Nines => [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999]
                .into_iter()
                .map(|value| Tick { value, label: Some(text::tick(value)) })
                .collect(),
        };
        self.thinned(ticks.into_iter().filter(|tick| self.holds(tick.value)).collect(), room)
    }

    /// Ticks at these values, with labels if there is space.
    pub fn ticks_at(
        &self,
        values: impl Iterator<Item = f64>,
        label: impl Fn(f64) -> String,
        room: impl Fn(&str) -> f64,
    ) -> Vec<Tick> {
        let tick = |value| Tick { value, label: Some(label(value)) };
        self.thinned(values.filter(|value| self.holds(*value)).map(tick).collect(), room)
    }

    fn linear_ticks(&self) -> Vec<Tick> {
        /// Approximate number of steps between ticks.
        const STEPS: f64 = 5.0;
        let range = self.high - self.low;
        let magnitude = 10f64.powf((range / STEPS).log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0]
            .into_iter()
            .map(|factor| factor * magnitude)
            .find(|step| range / step <= STEPS + 0.5)
            .unwrap_or(range);
        // Multiples of the step avoid the rounding errors of a sum.
        let first = (self.low / step).ceil();
        let count = ((self.high / step).floor() - first).clamp(0.0, 4.0 * STEPS) as u32;
        (0..=count)
            .map(|index| (first + f64::from(index)) * step)
            .map(|value| Tick { value, label: Some(text::tick(value)) })
            .collect()
    }

    fn log_ticks(&self) -> Vec<Tick> {
        let decades = self.high - self.low;
        let labelled: &[u32] = match decades {
            _ if decades <= 1.2 => &[1, 2, 3, 5, 7],
            _ if decades <= 2.2 => &[1, 2, 5],
            _ if decades <= 3.4 => &[1, 3],
            _ => &[1],
        };
        let (first, last) = (self.low.floor() as i32, self.high.ceil() as i32);
        let mut ticks = Vec::new();
        for exponent in first..=last {
            for digit in 1..=9 {
                let value = f64::from(digit) * 10f64.powi(exponent);
                let label = labelled.contains(&digit).then(|| text::tick(value));
                if label.is_some() || decades <= 3.4 {
                    ticks.push(Tick { value, label });
                }
            }
        }
        ticks
    }

    /// Removes labels that would touch the previous one. Labels at the ends have priority.
    fn thinned(&self, mut ticks: Vec<Tick>, room: impl Fn(&str) -> f64) -> Vec<Tick> {
        let extent = |tick: &Tick| {
            let half = tick.label.as_deref().map(|label| room(label) / 2.0)?;
            let at = self.at(tick.value);
            Some((at - half, at + half))
        };
        let is_apart = |a: (f64, f64), b: (f64, f64)| a.1 <= b.0 || b.1 <= a.0;
        let labelled: Vec<usize> =
            (0..ticks.len()).filter(|&index| ticks[index].label.is_some()).collect();
        let mut taken: Vec<(f64, f64)> = Vec::new();
        let ends = labelled.last().into_iter().chain(labelled.first());
        let keeps_ends = self.kind != Kind::Log || labelled.len() <= 2;
        let order: Vec<usize> = if keeps_ends {
            ends.copied().chain(labelled.iter().copied()).collect()
        } else {
            labelled.clone()
        };
        let mut kept = Vec::new();
        for index in order {
            let Some(extent) = extent(&ticks[index]) else { continue };
            if !kept.contains(&index) && taken.iter().all(|other| is_apart(*other, extent)) {
                taken.push(extent);
                kept.push(index);
            }
        }
        for index in labelled.into_iter().filter(|index| !kept.contains(index)) {
            ticks[index].label = None;
        }
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, room: f64) -> Vec<String> {
        scale.ticks(|_| room).into_iter().filter_map(|tick| tick.label).collect()
    }

    #[test]
    fn linear_ticks_are_round_and_begin_at_zero() {
        let check = |high: f64, expected: &[&str]| {
            let scale = Scale::around(Kind::Linear, [high].into_iter(), 0.0, 500.0);
            assert_eq!(labels(scale, 10.0), expected, "{high}");
        };
        check(19.4, &["0", "5", "10", "15", "20"]);
        check(0.83, &["0", "0.2", "0.4", "0.6", "0.8"]);
        check(100.0, &["0", "20", "40", "60", "80", "100"]);
        check(41_000.0, &["0", "10k", "20k", "30k", "40k"]);
    }

    #[test]
    fn logarithmic_ticks_fit_the_range() {
        let check = |low: f64, high: f64, expected: &[&str]| {
            let scale = Scale::around(Kind::Log, [low, high].into_iter(), 0.0, 500.0);
            assert_eq!(labels(scale, 10.0), expected, "{low} to {high}");
        };
        check(0.4, 3.0, &["0.5", "0.7", "1", "2", "3"]);
        check(0.4, 30.0, &["0.5", "1", "2", "5", "10", "20"]);
        check(0.2, 2000.0, &["1", "10", "100", "1,000"]);
    }

    #[test]
    fn percentiles_are_equally_far_apart() {
        let scale = Scale::between(Kind::Nines, 0.0, 99.9, 0.0, 300.0);
        for (percentile, at) in [(0.0, 0.0), (90.0, 100.0), (99.0, 200.0), (99.9, 300.0)] {
            assert!((scale.at(percentile) - at).abs() < 1e-6, "{percentile}");
        }
        assert_eq!(labels(scale, 10.0), ["0", "50", "90", "99", "99.9"]);
        assert!(scale.at(100.0).is_finite());
    }

    #[test]
    fn labels_never_touch() {
        for (kind, high, room) in
            [(Kind::Linear, 1e6, 120.0), (Kind::Log, 1e6, 200.0), (Kind::Log, 1e30, 40.0)]
        {
            let scale = Scale::around(kind, [1.0, high].into_iter(), 0.0, 500.0);
            let ticks = scale.ticks(|_| room);
            let places: Vec<f64> = ticks
                .iter()
                .filter(|tick| tick.label.is_some())
                .map(|tick| scale.at(tick.value))
                .collect();
            assert!(!places.is_empty());
            assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= room), "{places:?}");
        }
    }

    #[test]
    fn nothing_leaves_the_canvas() {
        for kind in [Kind::Linear, Kind::Log, Kind::Nines] {
            for values in [&[][..], &[0.0], &[5e-324], &[f64::MAX], &[-1.0, f64::NAN]] {
                let scale = Scale::around(kind, values.iter().copied(), 10.0, 20.0);
                for value in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY, 5e-324, f64::MAX] {
                    let at = scale.at(value);
                    assert!((10.0..=20.0).contains(&at), "{kind:?} {values:?} {value}: {at}");
                }
                assert!(scale.ticks(|_| 1.0).len() < 10_000);
            }
        }
    }
}
