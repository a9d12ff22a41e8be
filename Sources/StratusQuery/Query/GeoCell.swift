package import StratusModel

/// A square on the sphere: the unit by which places are indexed.
///
/// The sphere is seen on the six faces of a cube; each face is halved in both directions at every
/// level. A cell's code is its face and the interleaved halves, so that a cell is one run of codes.
/// Unlike a grid of latitude and longitude, this one has neither poles nor a date line. The areas
/// of a level's cells differ by a factor of about five at most. (After Google's S2, with the plain
/// projection and Z-order.)
package struct GeoCell: Sendable, Hashable {
    /// The axis that points out of the face, 0…5: x, y, z, then their opposites.
    var face: UInt8
    /// 0 is a face; at 30 a cell is smaller than two centimetres.
    package var level: Int
    var column: UInt32
    var row: UInt32

    package static let faces: [GeoCell] = (0..<6).map {
        GeoCell(face: $0, level: 0, column: 0, row: 0)
    }
    package static let levelMax = 30
    private static let depth = UInt32(1) << 30

    /// The full-depth code of a place: what its index row holds.
    package static func code(of location: Location) -> UInt64 {
        let point = SpherePoint(location)
        let (x, y, z) = (point.x, point.y, point.z)
        let (ax, ay, az) = (x.magnitude, y.magnitude, z.magnitude)
        let face: UInt64
        let u: Double
        let v: Double
        if ax >= ay && ax >= az {
            (face, u, v) = (x > 0 ? 0 : 3, y / ax, z / ax)
        } else if ay >= az {
            (face, u, v) = (y > 0 ? 1 : 4, x / ay, z / ay)
        } else {
            (face, u, v) = (z > 0 ? 2 : 5, x / az, y / az)
        }
        return face << 60 | Self.interleaved(Self.step(u), Self.step(v))
    }

    /// The finest cell of a code: what sorting by distance takes for the place.
    package init(code: UInt64) {
        func gather(_ value: UInt64) -> UInt32 {
            var bits = value & 0x5555_5555_5555_5555
            bits = (bits | bits >> 1) & 0x3333_3333_3333_3333
            bits = (bits | bits >> 2) & 0x0F0F_0F0F_0F0F_0F0F
            bits = (bits | bits >> 4) & 0x00FF_00FF_00FF_00FF
            bits = (bits | bits >> 8) & 0x0000_FFFF_0000_FFFF
            return UInt32(truncatingIfNeeded: bits | bits >> 16)
        }
        let path = code & ((1 << 60) - 1)
        self.init(
            face: UInt8(truncatingIfNeeded: min(5, code >> 60)), level: Self.levelMax,
            column: gather(path), row: gather(path >> 1))
    }

    private init(face: UInt8, level: Int, column: UInt32, row: UInt32) {
        self.face = face
        self.level = level
        self.column = column
        self.row = row
    }

    private static func step(_ side: Double) -> UInt32 {
        let scaled = (side + 1) / 2 * Double(Self.depth)
        return scaled <= 0 ? 0 : scaled >= Double(Self.depth) ? Self.depth - 1 : UInt32(scaled)
    }

    private static func interleaved(_ column: UInt32, _ row: UInt32) -> UInt64 {
        func spread(_ value: UInt32) -> UInt64 {
            var bits = UInt64(value)
            bits = (bits | bits << 16) & 0x0000_FFFF_0000_FFFF
            bits = (bits | bits << 8) & 0x00FF_00FF_00FF_00FF
            bits = (bits | bits << 4) & 0x0F0F_0F0F_0F0F_0F0F
            bits = (bits | bits << 2) & 0x3333_3333_3333_3333
            return (bits | bits << 1) & 0x5555_5555_5555_5555
        }
        return spread(row) << 1 | spread(column)
    }

    /// The codes within this cell.
    package var codes: ClosedRange<UInt64> {
        let below = UInt64(2 * (Self.levelMax - self.level))
        let first = UInt64(self.face) << 60 | Self.interleaved(self.column, self.row) << below
        return first...(first | ((1 << below) - 1))
    }

    package var children: [GeoCell] {
        precondition(self.level < Self.levelMax, "the finest cell has no children")
        let column = self.column << 1
        let row = self.row << 1
        return [(column, row), (column | 1, row), (column, row | 1), (column | 1, row | 1)].map {
            GeoCell(face: self.face, level: self.level + 1, column: $0.0, row: $0.1)
        }
    }

    // MARK: On the sphere

    /// The middle of the cell.
    package var middle: SpherePoint { self.point(0.5, 0.5) }

    /// Between which squared chords from `point` everything in this cell lies.
    ///
    /// A chord is a straight line, so the triangle inequality holds as it is: no angle is needed.
    /// The corners are the farthest from the middle, the sides being great circles.
    package func bounds(from point: SpherePoint) -> (nearest: Double, farthest: Double) {
        let middle = self.middle
        var radius = 0.0
        for (u, v) in [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)] {
            radius = max(radius, middle.squaredChord(to: self.point(u, v)))
        }
        let reach = radius.squareRoot() + Self.slack
        let chord = middle.squaredChord(to: point).squareRoot()
        let near = max(0, chord - reach)
        let far = chord + reach
        return (near * near, min(4 + Self.slack, far * far))
    }

    /// Far above rounding, a tenth of a millimetre on the ground.
    private static let slack = 1e-11

    private func point(_ u: Double, _ v: Double) -> SpherePoint {
        let side = 2 / Double(UInt64(1) << UInt64(self.level))
        let a = (Double(self.column) + u) * side - 1
        let b = (Double(self.row) + v) * side - 1
        let length = (1 + a * a + b * b).squareRoot()
        let (one, p, q) = (1 / length, a / length, b / length)
        switch self.face {
        case 0: return SpherePoint(x: one, y: p, z: q)
        case 1: return SpherePoint(x: p, y: one, z: q)
        case 2: return SpherePoint(x: p, y: q, z: one)
        case 3: return SpherePoint(x: -one, y: p, z: q)
        case 4: return SpherePoint(x: p, y: -one, z: q)
        default: return SpherePoint(x: p, y: q, z: -one)
        }
    }

    /// Cells that together hold every place within the squared chord of `centre`, as runs of codes
    /// in order, `countMax` at most.
    package static func cover(
        around centre: SpherePoint, within chord: Double, countMax: Int
    ) -> [ClosedRange<UInt64>] {
        var cells = Self.faces.filter { $0.bounds(from: centre).nearest <= chord }
        while let level = cells.first?.level, level < 26 {
            let finer = cells.flatMap(\.children).filter {
                $0.bounds(from: centre).nearest <= chord
            }
            if finer.count > countMax { break }
            cells = finer
        }
        var runs: [ClosedRange<UInt64>] = []
        for codes in cells.map(\.codes).sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = runs.last, last.upperBound + 1 == codes.lowerBound {
                runs[runs.count - 1] = last.lowerBound...codes.upperBound
            } else {
                runs.append(codes)
            }
        }
        return runs
    }
}
