//! Reports events to a transaction as a worker does, and handles the consequences.

use std::collections::VecDeque;
use std::rc::Rc;

use weir_config::snapshot::AccessFormat;
use weir_core::clock::Clock;
use weir_exchange::arena::{Arena, OfExchange};
use weir_exchange::local::surroundings::Sources;
use weir_exchange::local::table::LocalServer;
use weir_exchange::parts::account::LogOutput;
use weir_exchange::parts::arrival::{Arrival, Registration};
use weir_exchange::parts::deferred_work::DeferredWork;
use weir_exchange::parts::end::End;
use weir_exchange::parts::failure::MemberFailure;
use weir_exchange::parts::pieces::Pieces;
use weir_exchange::parts::tools::Tools;
use weir_exchange::parts::transaction_ends::{NextClientState, TransactionEnds};
use weir_exchange::transaction::exchange::Exchange;
use weir_exchange::transaction::relay::Relay;
use weir_exchange::transaction::tunnel::Tunnel;
use weir_exchange::transaction::{Transaction, stages};
use weir_http::message::RequestHead;
use weir_waf::inspection::Turn;

use super::cells::{Cells, On, State};
use super::client::Client;
use super::line::Queue;
use super::model::{self, Book};
use super::plan::{Ask, Plan};
use super::scene::{BEGINNING_US, Scene, Server};
use super::world::World;
use super::{asking, from_client, from_service, from_worker};

/// The current transaction, if any, and its environment.
pub struct Router {
    /// The active configuration.
    pub scene: Scene,
    /// The environment.
    pub world: World,
    /// The arena in which transactions are created.
    transactions: Arena<OfExchange, Transaction>,
    /// The current transaction.
    pub it: Option<Transaction>,
    /// Whether the head of a request on a stream has arrived, and its body has not begun.
    pub is_body_to_come: bool,
    /// The events of each state so far.
    pub cells: Cells,
}

fn key<K>(number: usize) -> weir_exchange::arena::Key<K> {
    weir_exchange::arena::Key::from_bits(1 << 32 | number as u64).expect("it is not 0")
}

impl Router {
    /// Creates the initial state.
    pub fn new(plan: Plan) -> Self {
        let world = World {
            tools: Tools::new(
                || 0,
                Sources { unix_s: || 1_000, fill_randomly: |bytes| bytes.fill(9) },
            ),
            clock: Clock::at_us(BEGINNING_US),
            is_draining: false,
            plan,
            client: Client::new(&plan, 0),
            members: Arena::default(),
            bad_connects: VecDeque::new(),
            queue: Queue::default(),
            delayed_until_us: None,
            jobs: Vec::new(),
            came_back: [0; 3],
            asked: None,
            refuses_tunnel: None,
            book: Book::default(),
        };
        Self {
            scene: Scene::new(),
            world,
            transactions: Arena::default(),
            it: None,
            is_body_to_come: false,
            cells: Cells::default(),
        }
    }

    /// The connections of the transaction.
    pub fn ends(&self) -> Option<&TransactionEnds> {
        self.it.as_ref().map(Transaction::ends)
    }

    /// The current transaction, if it is an exchange.
    pub fn http(&self) -> Option<&Exchange> {
        self.it.as_ref().and_then(Transaction::http)
    }

    /// Begins the transaction of a request or of a relayed connection.
    pub fn begin(&mut self, plan: Plan) {
        assert!(self.it.is_none(), "one at a time");
        let world = &mut self.world;
        let (client, stream) = (key(plan.number), key(plan.number));
        (world.plan, world.book, world.refuses_tunnel) = (plan, Book::default(), None);
        world.tools.offloaded.turn = match plan.judges_elsewhere {
            true => Turn { work_bytes_max: 0, ..Turn::WHOLE },
            false => Turn::WHOLE,
        };
        world.client = Client::new(&plan, world.clock.now_ms());
        world.bad_connects = [MemberFailure::Connect, MemberFailure::Busy]
            .into_iter()
            .take(plan.bad_connects)
            .collect();
        let server = Rc::clone(self.scene.server(plan.server, plan.has_http2_members));
        if plan.others && plan.server != Server::Plain {
            world.queue.fill(&server.pool.now(), world.clock);
        }
        let log_request = Vec::with_capacity(8);
        let registration = Registration {
            key: self.transactions.next_key(),
            client,
            stream: plan.has_http2_client.then_some(stream),
            logged: LogOutput::Line(AccessFormat::Json),
            log_request,
        };
        match plan.server {
            Server::Relay => self.begin_relay(&server, registration),
            _ => self.begin_exchange(&server, registration),
        }
        self.turn_ends();
    }

    fn begin_exchange(&mut self, server: &Rc<LocalServer>, registration: Registration) {
        let (head, text) = self.world.plan.request_head();
        let arrival = arrival(&head, &text, server, self.world.is_draining);
        let buffer = Vec::with_capacity(64);
        let key = registration.key;
        let begin = stages::begin;
        let verdict =
            begin(&mut self.world, &mut self.transactions, &arrival, registration, buffer);
        self.it = self.transactions.remove(key);
        let plan = self.world.plan;
        self.world.client.has_sent_end = !plan.has_body() && !plan.is_tunnel();
        self.world.client.is_end_used = self.world.client.has_sent_end;
        self.is_body_to_come = plan.has_http2_client && plan.has_body();
        let has_ended = plan.has_http2_client && !plan.has_body() && plan.ask != Ask::WebSocket;
        self.with_http(Some(On::Begins), |it, at| {
            it.client_ended = has_ended;
            it.enter(at, &head, verdict);
        });
        if !plan.has_http2_client {
            // The bytes after the head are processed, even if there are none.
            from_client::input(self);
        }
    }

    fn begin_relay(&mut self, server: &Rc<LocalServer>, registration: Registration) {
        let nothing = RequestHead::new();
        let arrival = arrival(&nothing, b"", server, self.world.is_draining);
        let pool = server.settings().pool;
        let relay = Relay::begin(&mut self.world, &arrival, registration, pool);
        self.it = Some(Transaction::Relay(relay));
        self.with(Some(On::Begins), |it, at| it.resume(at));
    }

    /// Calls a function with the transaction. If the transaction has ended afterwards, it is removed. `on`: what it is told.
    pub fn with<R: Default>(
        &mut self,
        on: Option<On>,
        act: impl FnOnce(&mut Transaction, &mut World) -> R,
    ) -> R {
        let Some(it) = &mut self.it else { return R::default() };
        let before = State::of(it);
        let result = act(it, &mut self.world);
        let over = it.ends_mut().over.take();
        if let Some(on) = on {
            let after = match &over {
                Some(NextClientState::Tunnel { .. }) => State::Tunnel,
                Some(_) => State::Over,
                None => State::of(it),
            };
            self.cells.note(before, on, after);
        }
        if let Some(after) = over {
            self.go_on_after(&after);
        }
        while let Some(deferred) = self.world.tools.deferred_work.pop() {
            from_service::run(self, deferred);
        }
        if std::mem::take(&mut self.world.client.goes_on) {
            from_client::goes_on(self);
        }
        result
    }

    /// As [`Self::with`], for an exchange.
    pub fn with_http<R: Default>(
        &mut self,
        on: Option<On>,
        act: impl FnOnce(&mut Exchange, &mut World) -> R,
    ) -> R {
        let on = on.filter(|_| self.http().is_some());
        self.with(on, |it, at| it.http_mut().map_or_else(R::default, |exchange| act(exchange, at)))
    }

    /// As [`Self::with`], for a tunnel.
    pub fn with_tunnel<R: Default>(
        &mut self,
        on: Option<On>,
        act: impl FnOnce(&mut Tunnel, &mut World) -> R,
    ) -> R {
        let on = on.filter(|_| self.it.as_ref().is_some_and(Transaction::is_tunnel));
        self.with(on, |it, at| it.tunnel_mut().map_or_else(R::default, |tunnel| act(tunnel, at)))
    }

    fn go_on_after(&mut self, after: &NextClientState) {
        if let NextClientState::Tunnel { has_member_ended } = *after {
            self.it = self.it.take().map(|it| match it {
                Transaction::Http(exchange) => Transaction::Tunnel(Tunnel::of(exchange)),
                Transaction::Relay(relay) => Transaction::Tunnel(Tunnel::of_relay(relay)),
                tunnel @ Transaction::Tunnel(_) => tunnel,
            });
            let client = &self.world.client;
            let has_client_ended =
                client.stream.is_none() && client.has_ended && !client.has_input();
            return self.with_tunnel(Some(On::Begins), |it, at| {
                it.start(at, (has_client_ended, has_member_ended))
            });
        }
        let it = self.it.take().expect("it is over now");
        let ends = it.ends();
        assert!(ends.phase.attempt().is_none(), "the member is left");
        assert!(ends.context.is_none() && !ends.phase.wait_state().waits(), "it waits for nothing");
        if let Transaction::Http(exchange) = &it {
            assert!(
                exchange.filters.on.is_none() && exchange.request.bytes.is_empty(),
                "it is empty"
            );
        }
        let buffers = if self.world.plan.server == Server::Relay { 1 } else { 2 };
        let buffers = buffers + self.world.book.handed_out;
        assert_eq!(self.world.book.recycled, buffers, "buffers come back");
        let received = ends.account.bytes_received as usize;
        assert!(received <= self.world.client.used, "bytes of the request are counted once");
        self.world.book.check_over(&self.world.plan, &self.world.client, after);
        drop(it);
        assert!(self.world.tools.limit_places.is_empty(), "places under limits");
        let is_left = |deferred: &DeferredWork| matches!(deferred, DeferredWork::Leave { .. });
        let is_asked = self.world.asked.is_some();
        assert_eq!(
            is_asked,
            self.world.tools.deferred_work.iter().any(is_left),
            "the service is left"
        );
        assert!(self.world.queue.is_empty(), "nobody waits in line");
        let is_busy = self.world.members.iter().any(|(_, it)| it.exchange.is_some());
        assert!(!is_busy, "no connection carries it");
        model::check_nothing_is_left(&self.scene, self.world.queue.others());
    }

    /// Handles the end of a turn of the loop.
    pub fn turn_ends(&mut self) {
        if std::mem::take(&mut self.is_body_to_come) {
            self.send_head();
        }
        from_worker::serve_waiting(self);
        let refuses = self.world.refuses_tunnel.take();
        if refuses.is_some() && refuses == self.ends().and_then(|ends| ends.phase.connection()) {
            self.with_http(Some(On::NoTunnel), |it, at| it.refuse_tunnel(at));
        }
        self.check();
    }

    /// Sends the head of a request alone, because a client may wait for a response before it sends the body.
    fn send_head(&mut self) {
        let is_unsent =
            |it: &Exchange| !it.request.is_sent() && it.ends.phase.connection().is_some();
        if self.http().is_some_and(is_unsent) {
            self.with_http(Some(On::ClientData), |it, at| {
                it.client_data(at, (b"", &Pieces::whole(0)), End::No)
            });
        }
    }

    /// Checks that a timer is set, so that the transaction cannot wait forever.
    fn check(&mut self) {
        let Some(it) = &self.it else { return };
        let ends = it.ends();
        assert!(ends.over.is_none(), "an end is seen to at once");
        let key = ends.phase.connection();
        let connection = key.and_then(|key| self.world.members.get(key));
        assert_eq!(connection.is_some(), key.is_some(), "its connection is there");
        assert!(from_worker::is_anything_due(self), "nothing ever comes of it");
        if let Some(exchange) = it.http() {
            let (plan, client) = (&self.world.plan, &self.world.client);
            model::check_leaving(plan, client, exchange, self.world.now_ms());
        }
        assert!(
            !ends.phase.wait_state().is_in_queue() || !self.world.queue.is_empty(),
            "a place in line"
        );
    }

    /// Handles a lost connection to the member.
    pub fn connection_lost(&mut self, why: MemberFailure) {
        from_worker::connection_lost(self, why);
    }

    /// Sends waiting data of the request, and continues if the member has received enough.
    pub fn let_request_out(&mut self) {
        self.with(Some(On::MemberTook), |it, at| {
            if asking::let_out(at, it.ends()) && !it.is_member_backed_up(at) {
                if let Some(stream) = at.member(it.ends()).and_then(|it| it.stream.as_mut()) {
                    stream.was_backed_up = false;
                }
                it.member_took(at);
            }
        });
    }
}

fn arrival<'a>(
    head: &'a RequestHead,
    input: &'a [u8],
    server: &'a Rc<LocalServer>,
    is_draining: bool,
) -> Arrival<'a> {
    Arrival {
        head,
        input,
        server,
        from: None,
        is_early: false,
        is_bound: false,
        is_misdirected: false,
        may_go_on: !is_draining,
    }
}
