"""The scripted daemon: connections, what it answers by itself, and what waits for the script."""

import os
import selectors
import socket
import time

import wire

CODES = {"NOT_FOUND": 5, "UNIMPLEMENTED": 12}
KINDS = {"counter": 0, "gauge": 1}
LIMITS = dict(
    max_frame=1 << 20,
    max_handles=1000000,
    max_items=65536,
    max_walks=4,
    max_lifetime_ms=86400000,
    max_output=4 << 20,
    idle_frame_ms=10000,
    max_charge_items=10000,
    max_operations_kept=1024,
    max_leases=1000,
    max_wait_ms=86400000,
    max_waits=64,
)
PIECE_PAUSE = 0.002


class Broken(Exception):
    """The client did what a client must not do, or did not do what it must."""


class Slot:
    """A request, and its reply once there is one: replies leave in the order of the requests."""

    def __init__(self, connection, request):
        self.connection, self.request = connection, request
        self.kind = request.WhichOneof("body")
        self.reply = None
        self.paths = []  # of an Add: what was behind its handles

    def waits_for_room(self):
        return self.kind == "charge" and self.request.charge.wait_ms > 0 and not self.request.charge.dry_run


class Connection:
    def __init__(self, sock):
        self.sock, self.buffer = sock, bytearray()
        self.slots = []
        self.held = []  # requests behind a Hello that is not answered yet
        self.greeted = False
        self.session = b""
        self.piece = 0

    def write(self, message):
        data = wire.frame(message)
        step = self.piece or len(data)
        try:
            for at in range(0, len(data), step):
                self.sock.sendall(data[at : at + step])
                if self.piece:
                    time.sleep(PIECE_PAUSE)
        except OSError:
            pass  # it has gone, and will be noticed when it is read from

    def write_ready(self):
        while self.slots and self.slots[0].reply is not None:
            self.write(self.slots.pop(0).reply)


class Daemon:
    """Serves one client. `said` is called for each line of the transcript."""

    def __init__(self, messages, path, said):
        self.messages, self.path, self.said = messages, path, said
        self.selector = selectors.DefaultSelector()
        self.listener = None
        self.connections = []
        self.current = None  # the connection with the session
        self.inbox = []  # requests for the script
        self.flushes = []
        self.session = None
        self.left = None  # a session that the client must not come back with
        self.told = b""  # the incarnation that the last Welcome of a session said
        self.refused, self.values, self.kinds = {}, {}, {}
        self.flush_error = None
        self.auto = None  # a Welcome for each Hello to come
        self.applies = False  # Adds are answered here
        self.counted = {}  # by path, of those
        self.applied = self.durable = 0  # the highest numbers told
        self.starts = 0
        self.max_items = LIMITS["max_items"]  # of the last Welcome
        self.piece = 0
        self.up()

    # ---- where it listens ----

    def up(self):
        self.starts += 1
        self.handles = {}
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(16)
        self.selector.register(self.listener, selectors.EVENT_READ, self.accept)

    def down(self):
        self.selector.unregister(self.listener)
        self.listener.close()
        os.unlink(self.path)
        for connection in list(self.connections):
            self.drop(connection)

    def stop(self):
        if self.listener.fileno() >= 0:
            self.down()
        self.selector.close()

    def accept(self):
        sock, _ = self.listener.accept()
        connection = Connection(sock)
        self.connections.append(connection)
        self.selector.register(sock, selectors.EVENT_READ, lambda: self.receive(connection))

    def drop(self, connection):
        if connection not in self.connections:
            return
        self.connections.remove(connection)
        self.selector.unregister(connection.sock)
        connection.sock.close()
        self.flushes = [slot for slot in self.flushes if slot.connection is not connection]
        if connection is self.current:
            self.current = None
            self.inbox = [slot for slot in self.inbox if slot.connection is not connection]

    # ---- what comes ----

    def receive(self, connection):
        try:
            data = connection.sock.recv(1 << 18)
        except ConnectionError:
            data = b""
        if not data:
            if connection.session:
                self.said("   (the client has closed the connection)")
            self.drop(connection)
            return
        connection.buffer += data
        while connection in self.connections:
            try:
                message = wire.take(connection.buffer)
            except ValueError as error:
                raise Broken(f"no frame: {error}") from error
            if message is None:
                break
            request = self.messages.Request.FromString(message)
            if request.id == 0:
                raise Broken(f"a request with id 0: {request}")
            if connection.session and not connection.greeted:
                connection.held.append(request)
            else:
                self.take(connection, request)

    def take(self, connection, request):
        slot = Slot(connection, request)
        if not slot.waits_for_room():
            connection.slots.append(slot)
        if connection.session:
            self.said(f"   {self.shown(request)}")
        if not connection.greeted:
            self.take_hello(slot)
        elif not self.serve(slot):
            self.inbox.append(slot)
        self.answer_flushes()

    def shown(self, request):
        text = str(request).replace("\n", " ").strip()
        return f"-> {text[:300]}"

    def take_hello(self, slot):
        hello = slot.request.hello
        if slot.kind != "hello":
            raise Broken(f"the first request on a connection is no Hello: {slot.request}")
        if len(hello.session) == 0:
            slot.connection.greeted = True
            self.answer(slot, "welcome", self.welcome())
            return
        if len(hello.session) != 16:
            raise Broken(f"a session of {len(hello.session)} bytes")
        if self.session not in (None, hello.session):
            raise Broken("another session than on the connection before")
        if hello.session == self.left:
            raise Broken("the session that another connection has now")
        if hello.incarnation != self.told:
            raise Broken(f"a Hello with the incarnation {hello.incarnation}, where {self.told} had been told")
        self.session = hello.session
        slot.connection.session = hello.session
        slot.connection.piece = self.piece
        if self.current is not None:
            self.said("   (a second connection takes over the session)")
            self.drop(self.current)
        self.current = slot.connection
        if self.auto is not None:
            self.answer(slot, "welcome", self.auto)
        else:
            self.inbox.append(slot)

    def welcome(self):
        welcome = self.messages.Welcome(version=1, daemon="script/1", incarnation=bytes([self.starts]) * 16)
        for name, value in LIMITS.items():
            setattr(welcome.limits, name, value)
        return welcome

    def welcomed(self, slot, welcome):
        """The Hello was answered: what was sent behind it is carried out."""
        connection = slot.connection
        connection.greeted = True
        if connection.session:
            self.told = welcome.incarnation
        self.max_items = welcome.limits.max_items
        if not welcome.resumed:
            self.handles = {}
        held, connection.held = connection.held, []
        for request in held:
            self.take(connection, request)

    # ---- what is answered without the script ----

    def serve(self, slot):
        """Answer it, if it is one of those. False: the script will."""
        if slot.kind == "intern" and slot.connection.session:
            self.intern(slot)
        elif slot.kind == "add" and slot.connection.session and self.applies:
            self.apply(slot)
        elif slot.kind == "ping":
            self.answer(slot, "pong", self.messages.Pong())
        elif slot.kind == "get":
            self.get(slot)
        elif slot.kind == "flush":
            self.flushes.append(slot)
        elif slot.kind == "metric_get":
            self.metric(slot)
        elif slot.kind == "end" and slot.connection.session:
            self.session = None
            self.answer(slot, "ended", self.messages.Ended())
        elif not slot.connection.session:
            self.answer(
                slot, "error", self.messages.Error(code=CODES["UNIMPLEMENTED"], text="not in this script")
            )
        else:
            self.resolve(slot)
            return False
        return True

    def intern(self, slot):
        intern, interned = slot.request.intern, self.messages.Interned()
        for index, path in enumerate(intern.paths):
            if path in self.refused:
                code, text = self.refused[path]
                interned.errors.add(index=index, code=code, text=text)
                self.handles.pop(intern.first_handle + index, None)
                self.handles[intern.first_handle + index] = path
            else:
                self.handles[intern.first_handle + index] = path
        self.check_items(slot, intern.paths)
        self.answer(slot, "interned", interned)

    def check_items(self, slot, items):
        if len(items) > self.max_items:
            raise Broken(f"{len(items)} items, where {self.max_items} are the most: {slot.request}")

    def resolve(self, slot):
        if slot.kind == "add":
            self.check_items(slot, slot.request.add.handles)
            for handle in slot.request.add.handles:
                if handle not in self.handles:
                    raise Broken(f"handle {handle} was not told in this session: {slot.request}")
                slot.paths.append(self.handles[handle])

    def apply(self, slot):
        self.resolve(slot)
        for path, delta in zip(slot.paths, slot.request.add.deltas, strict=True):
            self.counted[path] = self.counted.get(path, 0) + delta
        self.answer(slot, "applied", self.messages.Applied(batch=slot.request.add.batch))

    def get(self, slot):
        values = self.messages.Values()
        values.view.SetInParent()
        for path in slot.request.get.paths:
            if path in self.values:
                values.values.add(total=self.values[path], own=self.values[path], leaf=True)
            else:
                values.values.add(code=CODES["NOT_FOUND"], text="no such counter")
        self.answer(slot, "values", values)

    def metric(self, slot):
        name = slot.request.metric_get.name
        kind = self.kinds.get(name, "gauge")
        if kind == "none":
            self.answer(slot, "error", self.messages.Error(code=CODES["NOT_FOUND"], text="no such metric"))
        else:
            self.answer(slot, "metric", self.messages.Metric(name=name, kind=KINDS[kind]))

    def answer_flushes(self):
        pending = self.current and any(slot.kind == "add" for slot in self.current.slots)
        for slot in list(self.flushes):
            durable = slot.request.flush.durable
            if durable and self.flush_error is not None:
                code, text = self.flush_error
                reply = "error", self.messages.Error(code=code, text=text)
            elif pending or durable and self.durable < self.applied:
                continue
            else:
                reply = "flushed", self.messages.Flushed(durable=durable)
            self.flushes.remove(slot)
            self.answer(slot, *reply)

    # ---- answers ----

    def answer(self, slot, kind, body, raw=b""):
        reply = self.messages.Reply(id=slot.request.id)
        getattr(reply, kind).CopyFrom(body)
        if slot.connection.session:
            self.said(f"   <- {str(reply).replace(chr(10), ' ').strip()[:300]}")
        slot.reply = reply.SerializeToString() + raw
        if kind == "applied":
            self.applied = max(self.applied, body.batch)
        if slot.waits_for_room():
            slot.connection.write(slot.reply)
        else:
            slot.connection.write_ready()
        if kind == "welcome" and slot.connection.session:
            self.welcomed(slot, body)
        self.answer_flushes()

    def tell(self, kind, body, raw=b""):
        """What nobody asked for."""
        reply = self.messages.Reply()
        getattr(reply, kind).CopyFrom(body)
        self.said(f"   <- {str(reply).replace(chr(10), ' ').strip()[:300]}")
        self.current.write(reply.SerializeToString() + raw)
        if kind == "durable":
            self.durable = max(self.durable, body.batch)
        self.answer_flushes()
