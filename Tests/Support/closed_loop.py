"""Clients that ask again as soon as they are answered, over connections that stay open, and cost little themselves."""
import re, select, socket, time


class Connection:
    """An HTTP connection with at most one request under way."""

    def __init__(self, port, host="127.0.0.1"):
        self.socket, self.buffer, self.began = socket.create_connection((host, port)), b"", 0
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, path, body):
        method = b"GET" if body is None else b"POST"
        content = (body or "").encode()
        self.began = time.monotonic()
        self.socket.sendall(b"%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                            % (method, path.encode(), len(content), content))

    def answer(self):
        """Waits for the answer. Ends the program if it is a refusal."""
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.receive()
        head, _, rest = self.buffer.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        length = int(length.group(1)) if length else 0
        while len(rest) < length:
            rest += self.receive()
        self.buffer = rest[length:]
        body = rest[:length]
        if b" 200 " not in head.split(b"\r\n")[0] + b" " or b"serverErrorCode" in body:
            raise SystemExit(f"refused: {head.decode()}\n{body.decode()[:600]}")
        return body

    def receive(self):
        bytes_ = self.socket.recv(65_536)
        if not bytes_:
            raise SystemExit("the node has closed a connection")
        return bytes_


def ask_all(connections, make, count):
    """Asks `count` times, each connection again as soon as it is answered."""
    sent = 0
    for connection in connections[:count]:
        connection.ask(*make())
        sent += 1
    done = 0
    while done < count:
        for connection in connections:
            if done >= count:
                break
            connection.answer()
            done += 1
            if sent < count:
                connection.ask(*make())
                sent += 1


def ask_for(connections, seconds, make, rate=None, heard=lambda body: None):
    """Asks until the time is over, at a rate a second or as fast as answers come. Returns the seconds of each request, counted
    from when it was due."""
    took, idle, begun, asked = [], list(connections), time.monotonic(), 0
    due, busy = {}, {}
    end = begun + seconds
    while True:
        now = time.monotonic()
        while idle and now < end and (rate is None or begun + asked / rate <= now):
            connection = idle.pop(0)
            due[connection] = now if rate is None else begun + asked / rate
            connection.ask(*make())
            busy[connection.socket] = connection
            asked += 1
        if not busy and now >= end:
            return took
        pause = 0.5 if rate is None or not idle else max(0, min(0.5, begun + asked / rate - now))
        for ready in select.select(list(busy), [], [], pause)[0]:
            connection = busy.pop(ready)
            heard(connection.answer())
            took.append(time.monotonic() - due[connection])
            idle.append(connection)
