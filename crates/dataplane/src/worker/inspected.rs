//! What transactions tell, and what the web application firewall has found in requests.

use weir_core::clock::Clock;
use weir_exchange::parts::inspected::Inspected;
use weir_exchange::parts::notice::Notice;

use crate::worker::world::World;

impl World {
    /// Tells people, logs and metrics of a transaction.
    pub fn tell(&mut self, notice: Notice<'_>, clock: Clock) {
        match notice {
            Notice::Inspected(inspected) => self.note_inspected(inspected, clock),
            notice => self.notices.tell(notice, clock.now_ms()),
        }
    }

    /// Counts the rules that found something, and writes the line of a request.
    fn note_inspected(&mut self, inspected: &Inspected<'_>, clock: Clock) {
        for found in inspected.inspection.matches() {
            self.live.waf_rules.count(found.id);
        }
        for finding in inspected.inspection.findings() {
            self.live.waf_rules.count_check(finding.check);
        }
        self.waf_log.write(inspected, clock, &self.counted);
    }

    /// Hands all lines over that wait.
    pub fn flush_logs(&mut self) {
        self.log.flush(&self.counted);
        self.waf_log.flush(&self.counted);
    }
}
