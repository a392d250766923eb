//! Checks that a member receives the request of one exchange in order, without gaps, and complete if its framing says so.

use crate::message::{Request, check_request, check_trailers, path_block};
use crate::place::Version;
use crate::plan::{Deed, Framing, Plan};
use crate::tag::{Checker, Part};
use crate::world::{Finding, Kind, World};

/// A request that a member receives.
#[derive(Debug)]
pub struct Arrival<'a> {
    /// The shared state.
    pub world: &'a World,
    /// The exchange.
    pub plan: Plan,
    body: Checker,
    /// Whether the client waits for 100.
    pub expects: bool,
    /// The number of times that members have received the request.
    pub arrivals: u64,
}

impl<'a> Arrival<'a> {
    /// Checks a request head that the member with this number and version has received.
    pub fn begin(
        world: &'a World,
        (version, number): (Version, usize),
        request: &Request,
        length: Option<usize>,
    ) -> Result<Self, Finding> {
        let block = path_block(&request.target).unwrap_or_default();
        let named =
            world.key.read(block).filter(|(_, part, place)| (*part, *place) == (Part::Path, 0));
        let plan = named.and_then(|(id, ..)| world.plan(id));
        let Some(plan) = plan else {
            let what = format!("a member got a request of no exchange: {request:?}");
            return Err(Finding { what, id: None, received: Vec::new() });
        };
        let id = plan.id;
        let found = |what: String| Finding::new(format!("a member got {request:?}: {what}"), id);
        if plan.place.member != version {
            return Err(found("at the wrong pool".to_owned()));
        }
        if !plan.may_reach_member() {
            return Err(found("it was to be refused".to_owned()));
        }
        check_request(world.key, &plan, request).map_err(found)?;
        let announced = match plan.body.framing {
            Framing::Length => Some(plan.body.bytes),
            _ => None,
        };
        // An empty body may have a Content-Length or none.
        let is_same = length == announced || (plan.body.bytes == 0 && length.unwrap_or(0) == 0);
        if !is_same && plan.flaw.is_none() {
            return Err(found(format!("Content-Length {length:?} instead of {announced:?}")));
        }
        let arrivals = world.arrived(id);
        if arrivals > 1 {
            world.count(Kind::Again);
            if !plan.may_repeat() {
                return Err(found(format!("for the {arrivals}th time")));
            }
        }
        if let Some(what) = world.keeping.arrived(&world.tally, &plan, number).map_err(found)? {
            world.suspect(id, what, 1);
        }
        let body = Checker::new(world.key, id, Part::RequestBody);
        let expects = request.fields.iter().any(|(name, _)| name == "expect");
        Ok(Self { world, plan, body, expects, arrivals })
    }

    fn found(&self, what: &str) -> Finding {
        let (so_far, all) = (self.body.offset(), self.plan.body.bytes);
        Finding::new(format!("a member got {so_far} of {all} bytes: {what}"), self.plan.id)
    }

    /// Checks data of the body.
    pub fn data(&mut self, data: &[u8]) -> Result<(), Finding> {
        self.body.take(data).map_err(|what| self.found(&what).with(data))?;
        match self.body.offset() <= self.plan.body.bytes {
            true => Ok(()),
            false => Err(self.found("too many")),
        }
    }

    /// Checks a request that is complete by its framing.
    pub fn end(&mut self, trailers: &crate::message::Fields) -> Result<(), Finding> {
        if self.body.offset() != self.plan.body.bytes
            || self.plan.flaw.is_some()
            || self.plan.is_too_large()
        {
            return Err(self.found("they are called the whole body"));
        }
        let (planned, part) = (self.plan.body.has_trailers, Part::RequestTrailer);
        let had_trailers = check_trailers(self.world.key, &self.plan, part, planned, trailers)
            .map_err(|what| self.found(&what))?;
        let body = &self.plan.body;
        match body.framing {
            Framing::Length if body.bytes > 0 => self.world.count(Kind::Uploads),
            Framing::Chunked if body.bytes > 0 => self.world.count(Kind::ChunkedUploads),
            _ => {}
        }
        if had_trailers {
            self.world.count(Kind::RequestTrailers);
        }
        Ok(())
    }

    /// Checks a request that was visibly broken off.
    pub fn cut(&self) -> Result<(), Finding> {
        self.world.count(Kind::CutUploads);
        match self.plan.may_be_cut() {
            true => Ok(()),
            false => Err(self.found("then it was broken off")),
        }
    }

    /// The member's action on this arrival.
    pub fn deed(&self) -> Deed {
        match self.plan.deed {
            Deed::Silent { is_once: true, .. } if self.arrivals > 1 => Deed::Answer,
            deed => deed,
        }
    }
}
