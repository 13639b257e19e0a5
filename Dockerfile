# A static binary in an empty image, running as nobody.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /out/chaind ./cmd/chaind \
 && install -d -m 0700 -o 65532 -g 65532 /out/data /out/backup

FROM scratch
COPY --from=build /out/chaind /chaind
COPY --from=build --chown=65532:65532 /out/data /data
COPY --from=build --chown=65532:65532 /out/backup /backup
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY LICENSE /LICENSE
USER 65532:65532
VOLUME /data /backup
ENV CHAIND_DATA_DIR=/data
EXPOSE 8477
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 CMD ["/chaind", "health"]
ENTRYPOINT ["/chaind"]
CMD ["serve"]
